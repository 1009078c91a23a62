"""End STOPPING jobs: stop the runners, wait for the verdict, release the cluster."""

from __future__ import annotations

from datetime import timedelta

from jobs.actions.attempts.end_attempt import close_attempt, finish_stopping
from jobs.actions.clusters.warm_clusters import close_to_jobs
from jobs.actions.ingest.answer_runner import GRACE_S
from jobs.actions.ingest.leftovers import ingest_leftovers
from jobs.backends import registry
from jobs.backends.base import ClusterPhase, ComputeBackend
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_later
from jobs.errors import (
    BackendError,
    FramesPostponedError,
    NotYetGoneError,
    StaleJobError,
    StillLookingError,
)
from jobs.ground import clock
from jobs.models import Attempt, Job
from jobs.reconcilers.blocked import note_disk_full, note_unreachable
from jobs.statuses import JobStatus, StopReason
from monarch_client.crash_points import reach

LOOK_AGAIN_S = 0.5


def due() -> list[int]:
    """Return the STOPPING jobs."""
    return list(Job.objects.in_status(JobStatus.STOPPING).values_list("pk", flat=True))


def step(job_id: int) -> None:
    """Advance the stop of one job. Safe to repeat; a crash loses nothing."""
    with exclusive(LockSpace.JOB, job_id) as alone:
        if not alone:
            wake_later("stopping", job_id, delay_s=0.3)
            return
        job = Job.objects.in_status(JobStatus.STOPPING).filter(pk=job_id).first()
        if job is None:
            return
        attempt = job.attempts.select_related("cluster").order_by("-number")[0]
        try:
            if attempt.ended_at is not None or _has_ended(job, attempt):
                finish_stopping(job, attempt)
        except StillLookingError:
            wake_later("stopping", job_id, delay_s=LOOK_AGAIN_S)
        except BackendError as error:
            note_unreachable(job, attempt, error)
        except FramesPostponedError:
            note_disk_full(job, attempt)
        except StaleJobError:
            return


def _has_ended(job: Job, attempt: Attempt) -> bool:
    """Whether no process of the attempt runs any more. Stops the runners if one does."""
    assert attempt.cluster is not None  # noqa: S101 - start_attempt makes them together
    backend = registry.get(job.backend_name)
    phase = backend.observe(attempt.cluster.name, attempt_id=attempt.pk).phase
    # After the grace period the runner kills the program and reports; else both are killed.
    patience = timedelta(seconds=GRACE_S + backend.stop_patience_s)
    overdue = clock.now() - (job.stopping_at or clock.now()) > patience
    is_there = phase in {ClusterPhase.STARTING, ClusterPhase.UP}
    # A runner that has reported is stopped, also while the launch is not known to be over.
    has_runner = phase is ClusterPhase.UP or attempt.contacted_at is not None
    if is_there and (overdue or not has_runner):
        return _take_away(job, attempt, backend)
    if is_there:
        reach("stop.asking")
        try:
            backend.stop(attempt.cluster.name, GRACE_S, attempt_id=attempt.pk)
        finally:
            # Also if the answer is late: the request may have arrived all the same, and the attempt
            # may end before the next step.
            reach("stop.asked")
        return False
    ingest_leftovers(attempt, backend)
    close_attempt(attempt, StopReason(job.stop_reason), job.message)
    return True


def _take_away(job: Job, attempt: Attempt, backend: ComputeBackend) -> bool:
    assert attempt.cluster is not None  # noqa: S101 - start_attempt makes them together
    close_to_jobs(attempt.cluster.pk)
    ingest_leftovers(attempt, backend, may_live=True)
    try:
        backend.tear_down(attempt.cluster.name)
    except NotYetGoneError:
        return False
    close_attempt(attempt, StopReason(job.stop_reason), job.message)
    return True
