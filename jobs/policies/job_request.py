"""JobRequest: what a job requests of the portal, derived once from its specification. Pure.

Admission makes it from the parsed specification, and `Job` stores it: what the queue counts in
columns of its own, the rest in the column `request_options`. Whatever decides about a job reads
this; the specification itself goes whole to backends, to pages and to reruns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from jobs.policies.endings import RetryPolicy
from jobs.policies.idle import IdlePolicy
from jobs.policies.reuse import fingerprint
from monarch_client.spec import JobSpec, LogPolicy
from monarch_client.spec.accelerators import most_accelerators

PRICE_KEY_LENGTH = 24
# The fields that are columns of `Job` with the same name.
COLUMNS = (
    "backend_name",
    "num_nodes",
    "queue_name",
    "gpu_type",
    "gpu_count",
    "duration_s",
    "preemptible",
    "group_name",
    "group_limit",
    "price_key",
    "fingerprint",
)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The request of one job, which never changes.

    `gpu_count` is that of all nodes. `price_key` is equal for jobs that cost the same on one
    backend. `fingerprint` is that of the machines, if the job may run on any matching warm cluster,
    else "". `cluster` names the only warm cluster that the job may run on, else "". `gateway`: the
    job connects to the gateway by itself. `waits_for_laptops`: it has workers and no driver.
    """

    backend_name: str
    num_nodes: int = 1
    queue_name: str = "default"
    gpu_type: str = ""
    gpu_count: int = 0
    duration_s: int | None = None
    preemptible: bool = False
    group_name: str = ""
    group_limit: int = 1
    price_key: str = ""
    fingerprint: str = ""
    resources: Mapping[str, Any] = field(default_factory=dict)
    gateway: bool = False
    waits_for_laptops: bool = False
    reuse: bool = False
    cluster: str = ""
    idle: IdlePolicy = field(default_factory=IdlePolicy)
    # Percent of utilization below which GPUs count as idle.
    gpu_below: int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    # Whether it has no driver, because its workers serve that of its parent.
    serves_parent: bool = False
    budget_usd: float | None = None
    # Whether it is held, instead of failed, when a job that it needs does not succeed.
    held_if_dependency_fails: bool = False
    # Environment variable -> name of a secret of the project.
    secrets: Mapping[str, str] = field(default_factory=dict)
    log_policies: tuple[LogPolicy, ...] = ()

    @classmethod
    def of(cls, spec: JobSpec, backend_name: str) -> Self:
        """Make the request from a parsed specification."""
        block, nodes = spec.portal, spec.num_nodes
        gpu_type, gpus_per_node = most_accelerators(spec.resources)
        matches_any = block.reuse and not block.cluster
        return cls(
            backend_name=backend_name,
            num_nodes=nodes,
            queue_name=block.queue,
            gpu_type=gpu_type,
            gpu_count=gpus_per_node * nodes,
            duration_s=block.max_duration_s,
            preemptible=block.preemptible,
            group_name=block.concurrency.group if block.concurrency else "",
            group_limit=block.concurrency.max if block.concurrency else 1,
            price_key=fingerprint(spec, "")[:PRICE_KEY_LENGTH],
            fingerprint=fingerprint(spec, backend_name) if matches_any else "",
            resources=spec.resources,
            gateway=block.gateway,
            waits_for_laptops=spec.waits_for_laptops,
            reuse=block.reuse,
            cluster=block.cluster or "",
            idle=IdlePolicy.from_dict(block.idle.to_dict() if block.idle else {}),
            gpu_below=block.idle.gpu_below if block.idle else None,
            # New workers would not be those to which the parent's driver is attached.
            retry=RetryPolicy(max_attempts=1, max_recoveries=0)
            if spec.serves_parent
            else RetryPolicy(block.retry.max_attempts, block.retry.max_recoveries),
            serves_parent=spec.serves_parent,
            budget_usd=block.budget_usd,
            held_if_dependency_fails=block.if_dependency_fails == "hold",
            secrets=spec.secrets,
            log_policies=block.log_policies,
        )

    @classmethod
    def stored(cls, columns: Mapping[str, Any], options: Mapping[str, Any]) -> Self:
        """Restore a request from `columns()` and `options()`."""
        idle = options.get("idle", {})
        return cls(
            **columns,
            resources=options.get("resources", {}),
            gateway=options.get("gateway", False),
            waits_for_laptops=options.get("waits_for_laptops", False),
            reuse=options.get("reuse", False),
            cluster=options.get("cluster", ""),
            idle=IdlePolicy.from_dict(idle),
            gpu_below=idle.get("gpu_below"),
            retry=RetryPolicy(**options.get("retry", {})),
            serves_parent=options.get("serves_parent", False),
            budget_usd=options.get("budget_usd"),
            held_if_dependency_fails=options.get("if_dependency_fails") == "hold",
            secrets=options.get("secrets", {}),
            log_policies=tuple(map(LogPolicy.from_dict, options.get("log_policies", ()))),
        )

    def columns(self) -> dict[str, Any]:
        """Return the values of the columns of `Job` that hold a part of the request."""
        return {name: getattr(self, name) for name in COLUMNS}

    def options(self) -> dict[str, Any]:
        """Return the rest as JSON, with the keys of the specification; unset ones are left out.

        `jobs/migrations/0031_job_request.py` wrote the same for the jobs of earlier releases.
        """
        idle = self.idle.to_dict()
        if self.gpu_below is not None:
            idle["gpu_below"] = self.gpu_below
        content = {
            "resources": dict(self.resources) or None,
            "gateway": self.gateway or None,
            "waits_for_laptops": self.waits_for_laptops or None,
            "reuse": self.reuse or None,
            "cluster": self.cluster or None,
            "serves_parent": self.serves_parent or None,
            "idle": idle if idle != IdlePolicy().to_dict() else None,
            "budget_usd": self.budget_usd,
            "if_dependency_fails": "hold" if self.held_if_dependency_fails else None,
            "secrets": dict(self.secrets) or None,
            "log_policies": [each.to_dict() for each in self.log_policies] or None,
        }
        return {
            **{key: value for key, value in content.items() if value is not None},
            "retry": {
                "max_attempts": self.retry.max_attempts,
                "max_recoveries": self.retry.max_recoveries,
            },
        }
