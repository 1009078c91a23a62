"""Check a specification against limits, log policies, warm clusters and its backend."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from jobs.admission.checked_spec import Checked
from jobs.backends.base import is_keeping
from jobs.limits import duration_limit, idle_limit
from jobs.logs.bad_patterns import BadPatternError
from jobs.logs.matching import compiled_part
from jobs.models import Cluster, Project
from jobs.policies.limits import shown_s
from jobs.policies.log_rules import KNOWN_RULES
from jobs.queueing.limits import load_queues, pool_of
from jobs.queueing.warm_clusters import joinable
from monarch_client.spec import JobSpec, SpecCode

Problem = tuple[str, SpecCode, str]


def policy_problems(project: Project, spec: JobSpec) -> list[Problem]:
    """Return (path, code, message) of each problem."""
    return [
        *_over_limits(project, spec),
        *_not_seen(spec),
        *_about_clusters(project, spec),
        *_bad_patterns(spec),
    ]


def backend_problems(checked: Checked) -> list[Problem]:
    """Return the problems that the backend has with the specification."""
    backend = checked.backend
    problems = backend.check(checked.content)
    if checked.spec.portal.reuse and not is_keeping(backend):
        problems = [*problems, ("portal.reuse", f"Backend {backend.name} has no warm clusters.")]
    return [(path, SpecCode.UNSUPPORTED_BY_BACKEND, message) for path, message in problems]


def _over_limits(project: Project, spec: JobSpec) -> Iterator[Problem]:
    wanted_s, most = spec.portal.max_duration_s, duration_limit(project)
    if wanted_s is not None and most is not None and wanted_s > most.value:
        message = f"At most {shown_s(most.value)}: the limit of {most.set_by}."
        yield "portal.max_duration", SpecCode.OVER_LIMIT, f"portal.max_duration: {message}"
    idle, longest = spec.portal.idle, idle_limit(project)
    if idle is not None and longest is not None and idle.minutes > longest.value:
        message = f"At most {longest.value} minutes: the limit of {longest.set_by}."
        yield "portal.idle.minutes", SpecCode.OVER_LIMIT, f"portal.idle.minutes: {message}"


def _not_seen(spec: JobSpec) -> Iterator[Problem]:
    idle = spec.portal.idle
    if idle is not None and idle.gpu_below is not None and not settings.MPORTAL_METRICS_SECONDS:
        path = "portal.idle.gpu_below"
        message = f"{path}: This portal does not measure GPUs: MPORTAL_METRICS_SECONDS is 0."
        yield path, SpecCode.NOT_ENFORCED, message


def _bad_patterns(spec: JobSpec) -> Iterator[Problem]:
    for number, policy in enumerate(spec.portal.log_policies):
        path = f"portal.log_policies[{number}].pattern"
        if policy.pattern is None:
            if policy.name not in KNOWN_RULES:
                known = ", ".join(KNOWN_RULES)
                message = f"{path} is missing: only {known} have one without it."
                yield path, SpecCode.MISSING, message
            continue
        try:
            compiled_part(policy.pattern)
        except BadPatternError as error:
            place = "" if error.position is None else f" at character {error.position + 1}"
            message = f"{path} is not a regular expression that the portal accepts: {error}{place}."
            yield path, SpecCode.BAD_VALUE, message


def _about_clusters(project: Project, spec: JobSpec) -> Iterator[Problem]:
    name = spec.portal.cluster
    if name is None:
        return
    cluster = joinable(project).filter(name=name).first()
    if cluster is None:
        message = f"Project {project.slug} has no warm cluster {name}. It may have been terminated."
        yield "portal.cluster", SpecCode.UNKNOWN_CLUSTER, message
    elif spec.num_nodes > cluster.num_nodes:
        message = f"Cluster {name} has {cluster.num_nodes} nodes, not {spec.num_nodes}."
        yield "num_nodes", SpecCode.UNKNOWN_CLUSTER, message
    elif not _same_pool(spec.portal.queue, cluster):
        message = f"Queue {spec.portal.queue} has no machines of the pool of cluster {name}."
        yield "portal.queue", SpecCode.UNKNOWN_CLUSTER, message


def _same_pool(queue_name: str, cluster: Cluster) -> bool:
    queues, backend = load_queues(), cluster.backend_name
    if queue_name not in queues:
        return True  # `queue_problems` reports it
    return pool_of(queues[queue_name], backend) == pool_of(queues.get(cluster.queue_name), backend)
