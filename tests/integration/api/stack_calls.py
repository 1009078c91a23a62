"""Stack dump requests over REST, and answers like a runner's."""

from __future__ import annotations

from typing import Any

from django.test import Client

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, Project
from jobs.statuses import Carrier, JobStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame
from tests.integration.api.conftest import Caller

TEXT = 'Process 7: python wait.py\n\nThread 7 (idle): "MainThread"\n    waits (wait.py:5)'


def running_attempt(project: Project, member: Caller) -> Attempt:
    """Create an attempt of a running job of `member`'s, with three nodes that reach the portal."""
    job = make_job(project, status=JobStatus.RUNNING, num_nodes=3, submitted_by=member.user)
    return make_attempt(job, contacted_at=clock.now(), carrier=Carrier.PUSH)


def path(of: Attempt) -> str:
    return f"/projects/rl/jobs/{of.job_id}/stacks"


def ask(caller: Caller, of: Attempt, **body: Any) -> dict[str, Any]:
    answer = caller.post(path(of), body)
    assert answer.status_code == 202, answer.content
    found: dict[str, Any] = answer.json()
    return found


def stacks(caller: Caller, of: Attempt, **query: Any) -> dict[str, Any]:
    answer = caller.get(path(of), query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def tell(of: Attempt, *reports: dict[str, Any], rank: int = 0) -> None:
    """Ingest reports of a rank, with the next numbers."""
    token = attempt_token(of.job_id, of.number)
    done = ingest_frames(of.pk, token, b"").get(str(rank), 0)
    frames = [
        frame(number, "stacks", rank=rank, **report)
        for number, report in enumerate(reports, done + 1)
    ]
    ingest_frames(of.pk, token, body(*frames))


def heartbeat(of: Attempt) -> dict[str, Any]:
    """Send a heartbeat and return the portal's answer to the runner."""
    token = attempt_token(of.job_id, of.number)
    answer = Client().post(
        f"/api/v1/attempts/{of.pk}/frames",
        b"",
        content_type="application/x-ndjson",
        headers={"Authorization": f"Bearer {token}"},
    )
    found: dict[str, Any] = answer.json()
    return found
