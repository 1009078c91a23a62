"""Submitting a text that may hold several specifications."""

from __future__ import annotations

from typing import Any

from jobs.actions.jobs.submit import submit_jobs
from jobs.errors import InvalidSpecError
from jobs.models import Job, Project
from jobs.permissions import Actor
from monarch_client.spec.documents import Document, documents_in


def submit_documents(
    actor: Actor, project: Project, text: str, *, idempotency_key: str | None = None
) -> list[Job]:
    """Submit the documents in `text` as `submit_jobs` does. Errors name lines of the whole text."""
    documents = documents_in(text)
    sources = [document.text for document in documents]
    try:
        return submit_jobs(actor, project, sources, idempotency_key=idempotency_key)
    except InvalidSpecError as error:
        errors = error.data.get("errors", [])
        moved = [_moved(row, documents[row.get("document", 0)]) for row in errors]
        raise InvalidSpecError(errors=moved) from error


def _moved(row: dict[str, Any], document: Document) -> dict[str, Any]:
    line = row.get("line")
    return row if line is None else {**row, "line": document.line_of(line)}
