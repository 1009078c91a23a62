"""Giving a job, or a cluster that waits for one, more time."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from django.db import transaction
from django.db.models import F

from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.present import keep, read_again, refuse_ended
from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.errors import (
    ConflictError,
    IdempotencyConflictError,
    OverLimitError,
)
from jobs.ground import clock
from jobs.limits import duration_limit, idle_limit, walltime_of
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Cluster, IdempotencyKey, Job
from jobs.permissions import Actor, require_cluster, require_extend
from jobs.policies.idle import IdlePolicy, Kept, idle_end
from jobs.policies.limits import most_extension_s, shown_s
from jobs.statuses import ClusterStatus, JobStatus

MOST_S = 366 * 86_400


def extend_job(actor: Actor, job: Job, seconds: int, *, idempotency_key: str | None = None) -> Job:
    """Let `job` run `seconds` longer than its max_duration; each call adds, unless its key is old.

    ConflictError where nothing limits it or it is being stopped, JobAlreadyFinalError when it has
    ended, OverLimitError beyond what an administrator allows. NotFoundError: it was deleted.
    """
    require_extend(actor, job)
    with transaction.atomic():
        keep(job)
        read_again(job)
        if idempotency_key and not _is_new(actor, job, seconds, idempotency_key):
            return job
        _refuse_where_it_makes_no_sense(job)
        _refuse_beyond_the_limit(job, seconds)
        before = {"extended_s": job.extended_s}
        Job.objects.filter(pk=job.pk).update(extended_s=F("extended_s") + seconds)
        read_again(job)
        message = (
            f"Extended by {shown_s(seconds)} by {actor.user.get_username()}: "
            f"it may run for {shown_s(walltime_of(job) or 0)}."
        )
        record(actor, "extend", job, before=before, after={"extended_s": job.extended_s})
        note_action(job, actor, "extend", message)
        wake_on_commit("running", job.pk)
    return job


@transaction.atomic
def extend_cluster(actor: Actor, cluster: Cluster, seconds: int) -> Cluster:
    """Keep a cluster without a job for at least `seconds` from now; a repetition changes nothing.

    ConflictError when a job is on it, or it is switched off or being terminated;
    OverLimitError beyond what an administrator allows.
    """
    require_cluster(actor, cluster)
    waiting = Cluster.objects.waiting().select_related("project")
    row = waiting.select_for_update(no_key=True, of=("self",)).filter(pk=cluster.pk).first()
    if row is None or row.idle_since is None or row.status != ClusterStatus.UP:
        raise ConflictError(
            f"{cluster.name} does not wait for a job just now: only a cluster that is up and idle "
            "can be kept for longer."
        )
    until = clock.now() + timedelta(seconds=seconds)
    limit = idle_limit(row.project)
    if limit is not None and until > row.idle_since + timedelta(minutes=limit.value):
        raise OverLimitError(
            f"A cluster waits at most {limit.value} min for a job: the limit of {limit.set_by}."
        )
    policy = IdlePolicy.from_dict(row.idle_policy)
    if until > idle_end(Kept(row.idle_since, policy), limit):
        before = {"until": row.idle_policy.get("until")}
        row.idle_policy = {**row.idle_policy, "until": until.isoformat()}
        row.save(update_fields=["idle_policy"])
        record(actor, "cluster_extend", row, before=before, after={"until": until.isoformat()})
        _record_extension(actor, row, f"Keeps {row.name} for {shown_s(seconds)} more")
    return row


def _record_extension(actor: Actor, cluster: Cluster, message: str) -> None:
    last = cluster.attempts.select_related("job").order_by("-pk").first()
    if last is not None:
        note_action(last.job, actor, "cluster_extend", message)
    publish_clusters_on_commit(cluster.project_id)
    wake_on_commit("autostop", cluster.pk)


def _is_new(actor: Actor, job: Job, seconds: int, key: str) -> bool:
    """Whether this is the caller's first such request; store it. Under the job's lock."""
    digest = hashlib.sha256(f"{job.pk} {seconds}".encode()).hexdigest()
    row, is_new = IdempotencyKey.objects.get_or_create(
        user=actor.user,
        project=job.project,
        # Apart from the keys of submits.
        key="extend " + hashlib.sha256(f"{job.pk} {key}".encode()).hexdigest(),
        defaults={"body_digest": digest, "job": job},
    )
    if row.body_digest != digest:
        raise IdempotencyConflictError(key=key)
    return is_new


def _refuse_where_it_makes_no_sense(job: Job) -> None:
    refuse_ended(job)
    if job.status == JobStatus.STOPPING:
        raise ConflictError(f"Job {job.pk} is being stopped; it is too late to extend it.")
    if walltime_of(job) is None:
        raise ConflictError(f"Job {job.pk} has no time limit: there is nothing to extend.")


def _refuse_beyond_the_limit(job: Job, seconds: int) -> None:
    limit = duration_limit(job.project)
    room_s = most_extension_s(job.duration_s, job.extended_s, limit)
    if limit is not None and room_s is not None and seconds > room_s:
        more = f"at most {shown_s(room_s)} more" if room_s else "no more"
        raise OverLimitError(
            f"Job {job.pk} gets {more}: a job runs at most {shown_s(limit.value)}, the limit of "
            f"{limit.set_by}. Only an administrator of the installation raises it."
        )
    if job.extended_s + seconds > MOST_S:
        raise OverLimitError("No job is extended by more than a year.")
