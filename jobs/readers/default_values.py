"""The values that the portal sets where a specification leaves them open."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.admission.checked_spec import Checked
from jobs.errors import BackendUnavailableError
from jobs.limits import duration_limit, idle_limit
from jobs.models import Project
from jobs.policies.limits import Limit, shown_s
from monarch_client.spec import JobSpec
from monarch_client.wire.clusters import DefaultValue

BY_DEFAULT, BY_PORTAL = "default", "chosen by the portal"
_PLACES = ("infra", "cloud", "region", "zone", "any_of", "ordered")

# Key, value and source.
_Row = tuple[str, object, str]


def default_values(project: Project, checked: Checked) -> list[DefaultValue]:
    """Return the open values of a specification that decide where, when and how long it runs."""
    rows = (*_of_machines(checked), *_of_queue(checked), *_of_limits(project, checked))
    return [
        DefaultValue(key=key, value=str(value), source=source)
        for key, value, source in rows
        if key not in checked.spec.lines
    ]


def usual_values(project: Project) -> dict[str, str]:
    """Return the values by key of a specification with a command alone; {} without a backend."""
    source = "run: x"
    try:
        checked = Checked.resolve(project, JobSpec.parse(source), source)
    except BackendUnavailableError:
        return {}
    return {row.key: row.value for row in default_values(project, checked)}


def _of_machines(checked: Checked) -> Iterator[_Row]:
    spec = checked.spec
    if not spec.is_monarch:
        yield "num_nodes", spec.num_nodes, BY_DEFAULT
    if not spec.portal.cluster and not any(key in spec.resources for key in _PLACES):
        yield "resources.infra", checked.backend_name, BY_PORTAL


def _of_queue(checked: Checked) -> Iterator[_Row]:
    yield "portal.queue", checked.request.queue_name, BY_DEFAULT
    yield "portal.priority", checked.spec.portal.priority, BY_DEFAULT


def _of_limits(project: Project, checked: Checked) -> Iterator[_Row]:
    longest, request = duration_limit(project), checked.request
    time = "unlimited" if longest is None else shown_s(longest.value)
    yield "portal.max_duration", time, _source(longest)
    yield "portal.retry.max_attempts", request.retry.max_attempts, BY_DEFAULT
    yield "portal.retry.max_recoveries", request.retry.max_recoveries, BY_DEFAULT
    if request.reuse:
        limit, minutes = idle_limit(project), request.idle.minutes
        lower = limit if limit is not None and limit.value < minutes else None
        yield "portal.idle.minutes", lower.value if lower else minutes, _source(lower)


def _source(limit: Limit | None) -> str:
    return BY_DEFAULT if limit is None else f"limit of {limit.set_by}"
