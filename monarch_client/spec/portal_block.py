"""The `portal` block of a specification as an object."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from monarch_client.spec.dependency_keys import Needed
from monarch_client.spec.portal_keys import DEFAULT_PORT, OWN_DRIVER


@dataclass(frozen=True, slots=True)
class Retry:
    """The limits of automatic retries and recoveries."""

    max_attempts: int = 1
    max_recoveries: int = 5


@dataclass(frozen=True, slots=True)
class Idle:
    """The idle policy of a warm cluster, of a job whose GPUs are idle, and of one without a driver.

    `down_after`: minutes from the stop to the termination; None: never. `gpu_below`: per cent;
    None: GPUs may be idle.
    """

    minutes: int
    then: str = "down"
    down_after: int | None = None
    gpu_below: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the normal form, with `down_after` and `gpu_below` only if given."""
        optional = {"down_after": self.down_after, "gpu_below": self.gpu_below}
        given = {key: value for key, value in optional.items() if value is not None}
        return {"minutes": self.minutes, "then": self.then, **given}


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """The actions for matching log lines. Without `pattern`: that of the policy of this name."""

    name: str
    actions: tuple[str, ...]
    pattern: str | None = None

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> LogPolicy:
        """Make it from the result of `to_dict`."""
        return cls(content["name"], tuple(content["actions"]), content.get("pattern"))

    def to_dict(self) -> dict[str, Any]:
        """Return the normal form, with `pattern` only if it was given."""
        content: dict[str, Any] = {"name": self.name, "actions": list(self.actions)}
        return content if self.pattern is None else {**content, "pattern": self.pattern}


@dataclass(frozen=True, slots=True)
class Concurrency:
    """A concurrency group of the project, of which at most `max` jobs run at once."""

    group: str
    max: int = 1


@dataclass(frozen=True, slots=True)
class PortalBlock:
    """The `portal` block of a specification. `meshes` is in rank order, empty for a plain job."""

    project: str | None = None
    meshes: dict[str, int] = field(default_factory=dict)
    driver: str = OWN_DRIVER
    port: int = DEFAULT_PORT
    gateway: bool = False
    queue: str = "default"
    labels: dict[str, str] = field(default_factory=dict)
    hold: bool = False
    priority: int = 50
    preemptible: bool = False
    detached: bool = False
    concurrency: Concurrency | None = None
    max_duration_s: int | None = None
    budget_usd: float | None = None
    retry: Retry = field(default_factory=Retry)
    reuse: bool = False
    idle: Idle | None = None
    cluster: str | None = None
    log_policies: tuple[LogPolicy, ...] = ()
    depends_on: tuple[Needed, ...] = ()
    if_dependency_fails: str = "fail"
    array: dict[str, list[str]] = field(default_factory=dict)
    max_parallel: int | None = None

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PortalBlock:
        """Make it from the result of `to_dict`."""
        meshes = content.get("meshes", {})
        order = content.get("mesh_order", list(meshes))
        group = content.get("concurrency")
        given = {key: value for key, value in content.items() if key not in _SPECIAL}
        return cls(
            **{key: value for key, value in given.items() if key in cls.__dataclass_fields__},
            meshes={name: meshes[name] for name in order},
            max_duration_s=content.get("max_duration"),
            concurrency=Concurrency(**group) if group else None,
            retry=Retry(**content.get("retry", {})),
            idle=Idle(**content["idle"]) if content.get("idle") else None,
            log_policies=tuple(map(LogPolicy.from_dict, content.get("log_policies", ()))),
            depends_on=tuple(map(Needed.of, content.get("depends_on", ()))),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the normal form, `max_duration` in seconds; keys without default only if given."""
        optional = {
            "project": self.project,
            "gateway": self.gateway or None,
            "driver": None if self.driver == OWN_DRIVER else self.driver,
            "labels": self.labels or None,
            "hold": self.hold or None,
            "preemptible": self.preemptible or None,
            "detached": self.detached or None,
            "concurrency": asdict(self.concurrency) if self.concurrency else None,
            "max_duration": self.max_duration_s,
            "budget_usd": self.budget_usd,
            "reuse": self.reuse or None,
            "idle": self.idle.to_dict() if self.idle else None,
            "cluster": self.cluster,
            "log_policies": [each.to_dict() for each in self.log_policies] or None,
            "depends_on": [each.to_dict() for each in self.depends_on] or None,
            "if_dependency_fails": None
            if self.if_dependency_fails == "fail"
            else self.if_dependency_fails,
            "array": self.array or None,
            "max_parallel": self.max_parallel,
            # PostgreSQL's jsonb keeps no order of keys, so the order of meshes goes beside them.
            "mesh_order": list(self.meshes) if len(self.meshes) > 1 else None,
        }
        return {
            **{key: value for key, value in optional.items() if value is not None},
            "meshes": dict(self.meshes),
            "port": self.port,
            "queue": self.queue,
            "priority": self.priority,
            "retry": {
                "max_attempts": self.retry.max_attempts,
                "max_recoveries": self.retry.max_recoveries,
            },
        }


_SPECIAL = (
    "meshes",
    "concurrency",
    "max_duration",
    "max_duration_s",
    "retry",
    "idle",
    "log_policies",
    "depends_on",
)
