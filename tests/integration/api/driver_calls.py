"""Requests of a job's program to the portal, with the token that it found in its environment."""

from __future__ import annotations

from typing import Any

from django.test import Client

from jobs.attempt_tokens import driver_token
from jobs.models import Attempt, Job
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job
from tests.integration.api.conftest import YAML, Caller


def token_of(attempt: Attempt) -> str:
    return driver_token(attempt.pk, attempt.job_id, attempt.number)


def program_of(attempt: Attempt) -> Caller:
    """Return the program of `attempt`, as a caller."""
    headers = {"Authorization": f"Bearer {token_of(attempt)}"}
    return Caller(None, headers, Client(raise_request_exception=False))


def running(project: Any, **fields: Any) -> Attempt:
    """Create a running job and return its attempt."""
    return make_attempt(make_job(project, status=JobStatus.RUNNING, **fields))


def submit(caller: Caller, text: str = YAML, slug: str = "rl", **headers: str) -> Any:
    return caller.post(
        f"/projects/{slug}/jobs", text, content_type="application/yaml", headers=headers
    )


def child_of(attempt: Attempt, text: str = YAML) -> Job:
    """Submit a job from the program of `attempt`, in project rl."""
    answer = submit(program_of(attempt), text)
    assert answer.status_code == 201, answer.content
    return Job.objects.get(pk=answer.json()["id"])
