"""Requests of a runner, honest or not: it posts frames with a token."""

from __future__ import annotations

from typing import Any

from django.test import Client

from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt


def token_of(attempt: Attempt) -> str:
    return attempt_token(attempt.job_id, attempt.number)


def post(attempt: Attempt, raw: bytes, token: str | None = None, **headers: str) -> Any:
    headers["Authorization"] = f"Bearer {token_of(attempt) if token is None else token}"
    return Client(raise_request_exception=False).post(
        f"/api/v1/attempts/{attempt.pk}/frames",
        raw,
        content_type="application/x-ndjson",
        headers=headers,
    )
