"""Steps that tests of reconcilers take instead of the runner."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.backends.base import LaunchRequest
from jobs.models import Installation, Job
from jobs.reconcilers import autostop, teardown


def push(fake, job: Job) -> None:
    """Hand in everything written so far, as the runner does."""
    attempt = job.attempts.select_related("cluster").order_by("-number")[0]
    body = b"\n".join(
        frame.rstrip() for frame in fake.frames(attempt.cluster.name, attempt_id=attempt.pk)
    )
    ingest_frames(attempt.pk, attempt_token(job.pk, attempt.number), body)


def status_of(job: Job) -> str:
    job.refresh_from_db()
    return job.status


def later(time_machine, **length: float) -> None:
    """Let the time pass."""
    time_machine.move_to(timezone.now() + timedelta(**length))


def end_idle() -> None:
    """Run the due steps of clusters without a job."""
    for reconciler in (autostop, teardown):
        for row_id in reconciler.due():
            reconciler.step(row_id)


def verbs(fake) -> list[str]:
    """List the requests to the backend, in order."""
    return [verb for verb, _ in fake.calls()]


def own_prefix() -> str:
    """Return the prefix of this installation's cluster names."""
    return f"mp{Installation.current().key}-"


def request_for(name: str, attempt_id: int = 1) -> LaunchRequest:
    """Return a launch request under that name, whether or not there is a row for it."""
    return LaunchRequest(
        cluster_name=name,
        project_slug="rl",
        job_id=1,
        job_name="hello",
        attempt_id=attempt_id,
        attempt_number=1,
        spec={},
        num_nodes=1,
        portal_url="http://portal",
        token="secret",
    )
