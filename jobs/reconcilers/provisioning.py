"""Provision jobs: launch a cluster at the backend, then check it until it is up."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction

from jobs.actions.attempts.apply_log_policies import avoided_nodes
from jobs.actions.attempts.end_attempt import close_attempt, finish_attempt, release_cluster
from jobs.actions.attempts.hand_secrets import hand_secrets
from jobs.actions.attempts.note_seen import news_of, note_seen
from jobs.attempt_tokens import attempt_token, authority_seed, driver_token
from jobs.backends import registry
from jobs.backends.base import (
    ClusterPhase,
    ClusterView,
    ComputeBackend,
    LaunchRequest,
    SeenCluster,
    UploadSource,
)
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake, wake_later
from jobs.errors import (
    BackendError,
    BackendUnavailableError,
    NoCapacityError,
    StaleJobError,
    StillLookingError,
)
from jobs.ground import clock
from jobs.ground.disk_space import is_full_disk
from jobs.lifecycle import move
from jobs.limits import backstop_of
from jobs.logs.handed import masked_errors
from jobs.models import Attempt, AttemptStage, Cluster, Job, JobCode
from jobs.policies.endings import retry_delay_s
from jobs.reconcilers import running
from jobs.reconcilers.blocked import note_unreachable
from jobs.statuses import ClusterStatus, JobStatus, StageName, StopReason, WaitReason
from monarch_client.crash_points import reach
from monarch_client.spec import JobSpec

log = logging.getLogger(__name__)

# How soon a backend that has not answered is queried again.
LOOK_AGAIN_S = 0.5
_DISK_IS_FULL = (
    "The disk of the portal's machine became full while the job was launched: it is launched again "
    "once there is room."
)
_NOTHING_RUNS = frozenset({ClusterPhase.GONE, ClusterPhase.STOPPED, ClusterPhase.FAILED})


def due() -> list[int]:
    """Return the jobs that are PROVISIONING."""
    return list(Job.objects.in_status(JobStatus.PROVISIONING).values_list("pk", flat=True))


def step(job_id: int) -> None:
    """Advance the launch of one job. Safe to repeat; a crash loses nothing."""
    with exclusive(LockSpace.JOB, job_id) as alone:
        if not alone:
            wake_later("provisioning", job_id, delay_s=0.3)
            return
        attempt = Attempt.objects.newest_of(job_id, JobStatus.PROVISIONING)
        if attempt is not None:
            # A user may cancel it just now; then STOPPING continues.
            with suppress(StaleJobError):
                _provision(attempt)
            if attempt.job.status in running.FOLLOWED:
                # Its runner may have reported before the portal saw its cluster.
                running.go_on_with(attempt)
            return
    # Its runner has reported, maybe about a job that has its machines.
    wake("running", job_id)


def _provision(attempt: Attempt) -> None:
    job, cluster = attempt.job, attempt.cluster
    assert cluster is not None  # noqa: S101 - start_attempt makes them together
    if attempt.ended_at is not None:
        # The portal crashed before it stored the launch, and the verdict arrived first.
        _machines_are_there(job, attempt, cluster)
        return
    try:
        with masked_errors(attempt):
            view = _requested(job, attempt, cluster, registry.get(job.backend_name))
    except NoCapacityError as error:
        _back_off(job, attempt, error)
        return
    except StillLookingError:
        wake_later("provisioning", job.pk, delay_s=LOOK_AGAIN_S)
        return
    except BackendUnavailableError as error:
        note_unreachable(job, attempt, error)
        return
    except BackendError as error:
        _give_up(job, attempt, error)
        return
    if view.phase not in {ClusterPhase.UP, ClusterPhase.ENDED}:
        note_seen(cluster, view.seen)
        return
    try:
        _machines_are_there(job, attempt, cluster, view.seen)
    except StaleJobError:
        # Another process terminates it: its location and price are stored all the same.
        note_seen(cluster, view.seen)
        raise


def _requested(
    job: Job, attempt: Attempt, cluster: Cluster, backend: ComputeBackend
) -> ClusterView:
    """Return the state of the cluster; launch it if there is none. BackendError: it failed."""
    try:
        view = backend.observe(cluster.name, attempt_id=attempt.pk, closely=False)
        if view.phase in _NOTHING_RUNS and _has_spoken(attempt):
            # It was started, and its machines are lost: launched again, it would run twice.
            return ClusterView(ClusterPhase.ENDED, seen=view.seen)
        if view.phase in {ClusterPhase.GONE, ClusterPhase.STOPPED}:
            reach("launch.asking")
            # No transaction is open here: a cloud may take long to answer.
            backend.launch(_request(job, attempt, cluster))
            reach("launch.asked")
            view = backend.observe(cluster.name, attempt_id=attempt.pk, closely=False)
    except DatabaseError:
        raise
    except Exception as error:
        if is_full_disk(error):
            # What was laid out is removed with the cluster: the job does not wait for its own room.
            raise NoCapacityError(_DISK_IS_FULL) from error
        if isinstance(error, BackendError):
            raise
        # A bug of the portal would recur at every tick, and the job would wait forever.
        message = f"The portal failed to launch it: {type(error).__name__}: {error}"
        raise BackendError(message) from error
    if view.failure is not None:
        raise view.failure
    return view


def _has_spoken(attempt: Attempt) -> bool:
    """Whether its runner has ever reached the portal, as of now."""
    return Attempt.objects.filter(pk=attempt.pk, contacted_at__isnull=False).exists()


def _request(job: Job, attempt: Attempt, cluster: Cluster) -> LaunchRequest:
    spec = _spec_of(job)
    trusted = (job.pk, attempt.number)
    if job.request.serves_parent:
        trusted = (job.parent_number or 0, job.parent_attempt or 0)
    return LaunchRequest(
        cluster_name=cluster.name,
        project_slug=job.project.slug,
        job_id=job.pk,
        job_name=job.name,
        attempt_id=attempt.pk,
        attempt_number=attempt.number,
        spec=spec,
        num_nodes=job.num_nodes,
        portal_url=registry.portal_url_for(job.backend_name),
        token=attempt_token(job.pk, attempt.number),
        driver_token=driver_token(attempt.pk, job.pk, attempt.number),
        authority_seed=authority_seed(*trusted),
        uploads=tuple(
            UploadSource(reference, target)
            for target, reference in JobSpec.from_dict(spec).upload_targets()
        ),
        secrets=hand_secrets(job, attempt),
        metrics_s=settings.MPORTAL_METRICS_SECONDS,
        autostop_minutes=backstop_of(cluster),
        # The first attempt knows of no nodes to avoid.
        avoid=avoided_nodes(job) if attempt.number > 1 else (),
    )


@transaction.atomic
def _machines_are_there(
    job: Job, attempt: Attempt, cluster: Cluster, seen: SeenCluster | None = None
) -> None:
    news = news_of(cluster, seen)
    is_up_now = Cluster.objects.filter(pk=cluster.pk, status=ClusterStatus.STARTING).update(
        status=ClusterStatus.UP, **news
    )
    if news and not is_up_now:
        Cluster.objects.filter(pk=cluster.pk).update(**news)
    end_stage(attempt, StageName.LAUNCH)
    move(job, JobStatus.SETTING_UP, attempt=attempt)
    transaction.on_commit(lambda: reach("launch.stored"))


def end_stage(attempt: Attempt, name: StageName, failure: str = "") -> None:
    """Mark a stage as ended, once."""
    AttemptStage.objects.filter(attempt=attempt, name=name, ended_at=None).update(
        ended_at=clock.now(), failure=failure[:500]
    )


def _back_off(job: Job, attempt: Attempt, error: NoCapacityError) -> None:
    """Queue the job again for a later try, with its position in the scheduling order."""
    with transaction.atomic():
        end_stage(attempt, StageName.LAUNCH, error.message)
        close_attempt(attempt, StopReason.NO_CAPACITY, error.message)
        release_cluster(attempt)
        delay_s = retry_delay_s(attempt.number)
        move(
            job,
            JobStatus.QUEUED,
            message=error.message,
            attempt=attempt,
            wait_reason=WaitReason.BACKOFF,
            next_try_at=clock.now() + timedelta(seconds=delay_s),
        )


def _give_up(job: Job, attempt: Attempt, error: BackendError) -> None:
    log.error("launch failed", extra={"action": "launch_failed", "job": job.pk}, exc_info=error)
    default = "See the message. An administrator finds details in the portal's log."
    hint = str(error.data.get("hint", default))
    with transaction.atomic():
        end_stage(attempt, StageName.LAUNCH, error.message)
        close_attempt(attempt, StopReason.BACKEND, error.message, hint)
        finish_attempt(job, attempt)


def _spec_of(job: Job) -> dict[str, Any]:
    """Return the job's specification with the code that programs have synchronized.

    In an array it has the id and index as variables.
    """
    spec: dict[str, Any] = job.spec
    if code := JobCode.objects.filter(job=job).first():
        spec = {**spec, "workdir": code.reference}
    if job.array_index is None:
        return spec
    place = {"MPORTAL_ARRAY_ID": job.array_id or "", "MPORTAL_ARRAY_INDEX": job.array_index}
    envs = {**spec.get("envs", {}), **{name: str(value) for name, value in place.items()}}
    return {**spec, "envs": envs}
