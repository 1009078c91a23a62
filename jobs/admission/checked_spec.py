"""Checked specifications, with all that the check determined.

`check_specs` makes these and `create_jobs` turns them into rows; plans, schedules and reruns read
them. The backend is resolved once: a cluster that is terminated between the check and the rows
cannot send the job to a backend that did not check it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from jobs.admission.dependencies import Needs
from jobs.backends import registry
from jobs.backends.base import ComputeBackend
from jobs.models import Project
from jobs.policies.job_request import JobRequest
from jobs.queueing.warm_clusters import joinable
from monarch_client.spec import JobSpec

Source = str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """A parsed specification, the text it came as, its backend and what it waits for.

    `content` is `spec.to_dict()`. It is shared and never changed. All jobs of an array share
    `request`.
    """

    spec: JobSpec
    content: dict[str, Any]
    request: JobRequest
    backend: ComputeBackend
    source: Source
    needs: Needs = field(default_factory=lambda: Needs({}, {}))

    @classmethod
    def resolve(cls, project: Project, spec: JobSpec, source: Source) -> Self:
        """Resolve the backend of the job.

        Raises:
            BackendUnavailableError: no backend of this portal runs such jobs.
        """
        content = spec.to_dict()
        backend = registry.get(_backend_name(project, spec, content))
        return cls(spec, content, JobRequest.of(spec, backend.name), backend, source)

    @property
    def backend_name(self) -> str:
        """The name under which the registry has the backend."""
        return self.backend.name

    def with_spec(self, spec: JobSpec) -> Self:
        """Return the same with a specification that differs only in its name and `envs`."""
        return replace(self, spec=spec, content=spec.to_dict())


def _backend_name(project: Project, spec: JobSpec, content: dict[str, Any]) -> str:
    """Return the backend of the cluster that the job names, else the one for its infra."""
    if spec.portal.cluster is not None:
        cluster = joinable(project).filter(name=spec.portal.cluster).first()
        if cluster is not None:
            return cluster.backend_name
    return registry.backend_for(content)
