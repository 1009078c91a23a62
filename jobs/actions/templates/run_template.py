"""Fill in a template's parameters, and submit the jobs that result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.actions.jobs.submit_documents import submit_documents
from jobs.errors import InvalidSpecError
from jobs.models import Job, Project
from jobs.permissions import Actor, Verb, require
from jobs.templating.find import FoundTemplate, template_named
from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.findings import SpecCode


def fill_in(found: FoundTemplate, values: Mapping[str, Any]) -> str:
    """Return the specification that `values` make; its first line says where it comes from.

    InvalidSpecError names every value that does not fit, at the path `values.NAME`.
    """
    if found.problem:
        error = SpecError("parameters", None, SpecCode.BAD_VALUE.value, found.problem)
        message = f"Template {found.template.name} cannot be run. Correct it and save it again."
        raise InvalidSpecError(message, errors=[error.to_dict()])
    try:
        text = found.template.filled_in(values)
    except InvalidSpecErrors as error:
        errors = [each.to_dict() for each in error.errors]
        raise InvalidSpecError("Some values do not fit.", errors=errors) from error
    return f"# Template {found.template.name}, version {found.number} ({found.scope.value})\n{text}"


def run_template(
    actor: Actor,
    project: Project,
    name: str,
    values: Mapping[str, Any],
    *,
    number: int | None = None,
    idempotency_key: str | None = None,
) -> list[Job]:
    """Submit the jobs of a template. InvalidSpecError: its values or its specification."""
    require(actor, Verb.SUBMIT_JOB, project)
    text = fill_in(template_named(project, name, number), values)
    return submit_documents(actor, project, text, idempotency_key=idempotency_key)
