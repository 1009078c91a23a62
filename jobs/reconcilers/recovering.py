"""Start the next attempt of RECOVERING jobs, once the machines of the last are released."""

from __future__ import annotations

from contextlib import suppress

from django.db.models import Q

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.history import record_note
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_later
from jobs.errors import ClusterGoneError, StaleJobError
from jobs.ground import clock
from jobs.ground.disk_space import shortage
from jobs.lifecycle import move
from jobs.models import Cluster, Job
from jobs.statuses import JobStatus, StopReason
from monarch_client.crash_points import reach

_SHORTAGE = "storage_full"


def due() -> list[int]:
    """Return the RECOVERING jobs whose delay is over."""
    ready = Q(next_try_at=None) | Q(next_try_at__lte=clock.now())
    jobs = Job.objects.in_status(JobStatus.RECOVERING).filter(ready)
    return list(jobs.values_list("pk", flat=True))


def step(job_id: int) -> None:
    """Start the next attempt, or come back when it is time. Safe to repeat."""
    with exclusive(LockSpace.JOB, job_id) as alone:
        if not alone:
            wake_later("recovering", job_id, delay_s=0.3)
            return
        jobs = Job.objects.in_status(JobStatus.RECOVERING).select_related("project")
        job = jobs.filter(pk=job_id).first()
        if job is None:
            return
        wait_s = _wait_s(job)
        if wait_s > 0:
            wake_later("recovering", job_id, delay_s=wait_s, why="back-off")
            return
        # Two attempts at once could write the same checkpoint: the old cluster is released first. A
        # warm cluster has no attempt any more.
        if Cluster.objects.to_tear_down().filter(attempts__job=job).exists():
            return
        reach("recover.due")
        if why := shortage():
            _note_shortage(job, why)
            return
        _start(job)


def _start(job: Job) -> None:
    try:
        start_attempt(job)
    except StaleJobError:
        # Moved meanwhile, or the named cluster has another job; the next tick tries again.
        return
    except ClusterGoneError as error:
        with suppress(StaleJobError):
            move(job, JobStatus.FAILED, reason=StopReason.NO_CAPACITY, message=error.message)


def _note_shortage(job: Job, why: str) -> None:
    """Record once why the job waits; each tick tries again."""
    last = job.events.order_by("-pk").first()
    if last is None or last.verb != _SHORTAGE:
        record_note(job, f"Waits for space on the portal's disk. {why}", verb=_SHORTAGE)


def _wait_s(job: Job) -> float:
    if job.next_try_at is None:
        return 0.0
    return (job.next_try_at - clock.now()).total_seconds()
