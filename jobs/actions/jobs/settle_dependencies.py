"""The effect of a needed job's end on a job that waits for it."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.jobs.history import record_note
from jobs.admission.dependency_messages import wait_for_dependencies, why_it_cannot_start
from jobs.background.hints import wake_on_commit
from jobs.lifecycle import move
from jobs.live.channel import publish_on_commit
from jobs.models import Job, JobDependency
from jobs.statuses import JobStatus, StopReason, WaitReason
from monarch_client.crash_points import reach

_HELD_HINT = "Release it to start it all the same, or cancel it."
_FAILED_HINT = "Fix and rerun what it needs, then rerun this job: names are looked up again."


@transaction.atomic
def settle_dependencies(job_id: int) -> None:
    """Act on the ends of jobs that a queued job needs; a second call changes nothing.

    It may start, waits for fewer, or, if one did not succeed, ends or is held as its specification
    says. A job that left the queue meanwhile is left alone.
    """
    queued = Job.objects.in_status(JobStatus.QUEUED).select_for_update(no_key=True)
    job = queued.filter(pk=job_id).first()
    if job is None:
        return
    rows = list(job.dependencies.select_related("needs").order_by("needs_number"))
    for row in rows:
        _catch_up(row)
    job.dependencies.exclude(ended_as="").update(noted=True)
    transaction.on_commit(lambda: reach("dependency.settled"))
    if any(row.is_broken for row in rows):
        _act_on_failure(job, rows)
    elif not job.held:
        changes = wait_for_dependencies(rows) or _waits_no_more(job)
        Job.objects.filter(pk=job.pk).update(**changes)
        publish_on_commit(job)
    wake_on_commit("queue")


def _waits_no_more(job: Job) -> dict[str, str]:
    if job.wait_reason != WaitReason.DEPENDENCY:
        return {}
    return {"wait_reason": "", "message": "", "hint": ""}


def _catch_up(row: JobDependency) -> None:
    """Note an end that was missed when it came, such as that of a job deleted by hand."""
    if row.ended_as or (row.needs is not None and not row.needs.is_final):
        return
    row.ended_as = JobStatus.CANCELLED if row.needs is None else row.needs.status
    row.save(update_fields=["ended_as"])


def _act_on_failure(job: Job, rows: list[JobDependency]) -> None:
    message = why_it_cannot_start(rows)
    if not job.request.held_if_dependency_fails:
        move(
            job,
            JobStatus.FAILED,
            reason=StopReason.DEPENDENCY,
            message=message,
            hint=_FAILED_HINT,
        )
        return
    job.dependencies.filter(pk__in=[row.pk for row in rows if row.is_broken]).update(waived=True)
    changes = {"wait_reason": WaitReason.HELD, "message": message, "hint": _HELD_HINT}
    Job.objects.filter(pk=job.pk).update(held=True, **changes)
    record_note(job, f"Held. {message}", verb="hold")
