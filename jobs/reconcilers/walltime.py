"""Enforce time limits of jobs: warn before the limit, then stop the job."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Q, QuerySet

from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.limits import duration_limit, walltime_of
from jobs.models import Attempt, Job, JobEvent, Project
from jobs.policies.limits import should_warn, shown_minutes_s, shown_s, walltime_s
from jobs.statuses import JobStatus, StopReason

WARNED = "walltime"


def timed_out(attempts: QuerySet[Attempt]) -> set[int]:
    """Return the jobs whose time is over, or ends soon without a warning so far.

    Few of thousands of running jobs are due.
    """
    now = clock.now()
    most = {project.pk: duration_limit(project) for project in Project.objects.all()}
    columns = ("pk", "job_id", "job__project_id", "job__duration_s", "job__extended_s")
    begun = attempts.filter(run_started_at__isnull=False)
    over, soon = set(), {}
    for row in begun.values_list(*columns, "run_started_at"):
        pk, job_id, project_id, requested_s, extended_s, began = row
        walltime = walltime_s(requested_s, extended_s, most.get(project_id))
        ran_s = (now - began).total_seconds()
        if walltime is not None and ran_s > walltime:
            over.add(job_id)
        elif walltime is not None and should_warn(ran_s, walltime):
            soon[job_id] = pk
    return over | soon.keys() - _warned(soon)


def watch_time(job: Job, attempt: Attempt) -> None:
    """Stop a job at its time limit; warn once before it.

    The time before `run` does not count. StaleJobError when the job was moved meanwhile.
    """
    walltime = walltime_of(job)
    if walltime is None or attempt.run_started_at is None:
        return
    ran_s = (clock.now() - attempt.run_started_at).total_seconds()
    if ran_s > walltime:
        _stop(job, attempt, walltime)
    elif should_warn(ran_s, walltime) and not _warned({job.pk: attempt.pk}):
        left = shown_minutes_s(walltime - ran_s)
        message = f"Stops in {left}: it may run for {shown_s(walltime)}. It can be extended."
        record_note(job, message, attempt, verb=WARNED)


def _warned(attempts: Mapping[int, int]) -> set[int]:
    """Return the jobs that were warned since their time limit was last extended."""
    notices = Q(verb=WARNED, attempt__in=attempts.values()) | Q(verb="extend")
    events = JobEvent.objects.filter(notices, job__in=attempts).order_by("pk")
    last = dict(events.values_list("job_id", "verb"))
    return {job_id for job_id, verb in last.items() if verb == WARNED}


def _stop(job: Job, attempt: Attempt, walltime: int) -> None:
    limit = duration_limit(job.project)
    requested_s = job.duration_s
    message = f"Ran longer than its max_duration of {shown_s(walltime)}."
    hint = "Raise portal.max_duration, or make the job save and resume its work."
    if limit is not None and (requested_s is None or requested_s + job.extended_s > limit.value):
        message = f"Ran longer than {shown_s(walltime)}, the limit of {limit.set_by}."
        hint = "Make the job save and resume its work; only an administrator raises the limit."
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.TIMEOUT,
        message=message,
        attempt=attempt,
        hint=hint,
    )
    wake_on_commit("stopping", job.pk)
