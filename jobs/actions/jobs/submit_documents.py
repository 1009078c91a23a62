"""Submit or check a text that may hold several specifications."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.actions.jobs.submit import check_spec, check_specs, submit_job, submit_jobs
from jobs.admission.checked_spec import Checked, Source
from jobs.errors import InvalidSpecError
from jobs.models import Job, Project
from jobs.permissions import Actor
from monarch_client.errors import SpecError
from monarch_client.spec.documents import Document, documents_in, several_documents

_TAKES_ONE = "this request takes one. Send it to .../{}, which takes all or none."


def submit_documents(
    actor: Actor, project: Project, text: str, *, idempotency_key: str | None = None
) -> list[Job]:
    """Submit the documents in `text` as `submit_jobs` does. Errors name lines of the whole text."""
    with _sources_in(text) as sources:
        return submit_jobs(actor, project, sources, idempotency_key=idempotency_key)


def submit_document(
    actor: Actor, project: Project, source: Source, *, idempotency_key: str | None = None
) -> Job:
    """Submit a source as `submit_job` does. InvalidSpecError, also if it is several."""
    refuse_several(source, _TAKES_ONE.format("jobs/batch"))
    if isinstance(source, str):
        return submit_documents(actor, project, source, idempotency_key=idempotency_key)[0]
    return submit_job(actor, project, source, idempotency_key=idempotency_key)


def check_document(actor: Actor, project: Project, source: Source) -> Checked:
    """Check a source as `check_spec` does. InvalidSpecError, also if it is several."""
    refuse_several(source, _TAKES_ONE.format("plan/batch"))
    if isinstance(source, str):
        return check_documents(actor, project, source)[0]
    return check_spec(actor, project, source)


def check_documents(actor: Actor, project: Project, text: str) -> list[Checked]:
    """Check the documents in `text` as `check_specs` does. Errors name lines of the whole text."""
    with _sources_in(text) as sources:
        return check_specs(actor, project, sources)


def refuse_several(source: Source, advice: str) -> None:
    """Raise InvalidSpecError with the advice if a text has several documents."""
    error = several_documents(source, advice) if isinstance(source, str) else None
    if error is not None:
        raise InvalidSpecError(errors=[error.to_dict()])


@contextmanager
def _sources_in(text: str) -> Iterator[list[str]]:
    """Yield the specifications in `text`; give errors the lines that they have in it."""
    documents = documents_in(text)
    try:
        yield [document.text for document in documents]
    except InvalidSpecError as error:
        errors = error.data.get("errors", [])
        moved = [_moved(row, documents[row.get("document", 0)]) for row in errors]
        raise InvalidSpecError(errors=moved) from error


def _moved(row: dict[str, Any], document: Document) -> dict[str, Any]:
    return {**row, **document.located(SpecError(**row)).to_dict()}
