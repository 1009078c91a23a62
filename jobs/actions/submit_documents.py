"""Submitting a text that may hold several specifications."""

from __future__ import annotations

from typing import Any

from jobs.actions.submit import submit_jobs
from jobs.errors import InvalidSpecError
from jobs.models import Job, Project
from jobs.permissions import Actor
from monarch_client.spec.documents import documents_in


def submit_documents(
    actor: Actor, project: Project, text: str, *, idempotency_key: str | None = None
) -> list[Job]:
    """As `submit_jobs`, of the documents in `text`. Errors name lines of the whole text."""
    documents = documents_in(text)
    sources = [document.text for document in documents]
    try:
        return submit_jobs(actor, project, sources, idempotency_key=idempotency_key)
    except InvalidSpecError as error:
        errors = error.data.get("errors", [])
        moved = [_moved(row, documents[row.get("document", 0)].lines_before) for row in errors]
        raise InvalidSpecError(errors=moved) from error


def _moved(row: dict[str, Any], lines: int) -> dict[str, Any]:
    return row if row.get("line") is None else {**row, "line": row["line"] + lines}
