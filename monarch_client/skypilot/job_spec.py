"""The request of a SkyPilotJob, checked and as plain data."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

from monarch_client.spec.portal_keys import DEFAULT_PORT

Reach = Literal["auto", "direct", "tunnel"]
LAST_PORT = 65534
# When the workers have ended SkyPilot ends the machines this much later, where its cloud can: a
# warm cluster has been idle before, one whose program was killed may have been inspected.
KEPT_MINUTES = 1
BACKSTOP_MINUTES = 5
# How a job is requested and reached, not what it is.
_NOT_PART = ("reach", "ready_timeout_s", "sky_python", "retry_until_up")


class JobOptions(TypedDict, total=False):
    """The keyword arguments of a SkyPilotJob; see docs/reference/skypilot-job.md."""

    cluster_name: str | None
    monarch_port: int
    idle_minutes_to_autostop: int | None
    down_on_autostop: bool
    setup_commands: str | Sequence[str] | None
    workdir: str | os.PathLike[str] | None
    file_mounts: Mapping[str, Any] | None
    envs: Mapping[str, str] | None
    secrets: Mapping[str, str] | None
    python_exe: str
    ready_timeout_s: float
    reach: Reach
    retry_until_up: bool
    sky_python: str


@dataclass(frozen=True)
class JobSpec:
    """A checked request. ValueError and TypeError of `of` say what is wrong with one."""

    meshes: dict[str, int]
    resources: dict[str, Any]
    cluster_name: str | None = None
    monarch_port: int = DEFAULT_PORT
    idle_minutes_to_autostop: int | None = None
    down_on_autostop: bool = True
    setup_commands: str = ""
    workdir: str = ""
    file_mounts: dict[str, Any] = field(default_factory=dict)
    envs: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    python_exe: str = "python3"
    ready_timeout_s: float = 3600.0
    reach: Reach = "auto"
    retry_until_up: bool = False
    sky_python: str = sys.executable

    @classmethod
    def of(cls, meshes: Mapping[str, int], resources: Any, options: JobOptions) -> JobSpec:
        """Make it from a user's arguments; paths become absolute."""
        given: dict[str, Any] = {**options}
        unknown = sorted(given.keys() - {each.name for each in fields(cls)})
        if unknown:
            raise TypeError(f"SkyPilotJob takes no {', '.join(unknown)}")
        setup = given.get("setup_commands") or ""
        given["setup_commands"] = setup if isinstance(setup, str) else "\n".join(setup)
        given["workdir"] = _folder(given.get("workdir"))
        given["file_mounts"] = _sources(given.get("file_mounts") or {})
        for name in ("envs", "secrets"):
            given[name] = {str(key): str(each) for key, each in (given.get(name) or {}).items()}
        spec = cls(dict(meshes), _resources(resources), **given)
        _check(spec)
        return spec

    @property
    def num_nodes(self) -> int:
        """The number of machines that all meshes need."""
        return sum(self.meshes.values())

    @property
    def is_kept(self) -> bool:
        """Whether the cluster may outlive the process that made it."""
        return self.idle_minutes_to_autostop is not None

    @property
    def backstop(self) -> tuple[int, bool]:
        """SkyPilot's autostop of an idle cluster: the minutes, and whether it terminates it."""
        return (KEPT_MINUTES, self.down_on_autostop) if self.is_kept else (BACKSTOP_MINUTES, True)

    @property
    def digest(self) -> str:
        """The same for what is the same job; secrets count by their names alone."""
        values = {**asdict(self), "secrets": sorted(self.secrets), "mesh_order": list(self.meshes)}
        kept = {name: value for name, value in values.items() if name not in _NOT_PART}
        text = json.dumps(kept, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def without_secrets(self) -> JobSpec:
        """Return a copy with the secrets' names but no values, which may be stored in a file."""
        return replace(self, secrets=dict.fromkeys(self.secrets, ""))


def _check(spec: JobSpec) -> None:
    if not spec.meshes:
        raise ValueError("meshes is empty: name at least one, such as {'trainers': 2}")
    for name, size in spec.meshes.items():
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"mesh {name!r}: a mesh is an attribute, so its name must be one")
        if not isinstance(size, int) or size < 1:  # type: ignore[redundant-expr]
            raise ValueError(f"mesh {name!r}: {size!r} is not a number of hosts")
    if not 1 <= spec.monarch_port <= LAST_PORT:
        raise ValueError(f"monarch_port {spec.monarch_port} is not within 1 to {LAST_PORT}")
    if spec.idle_minutes_to_autostop is not None and spec.idle_minutes_to_autostop < 1:
        raise ValueError("idle_minutes_to_autostop is a number of minutes, 1 or more, or None")
    if spec.reach not in ("auto", "direct", "tunnel"):
        raise ValueError(f"reach {spec.reach!r} is none of auto, direct, tunnel")


def _resources(given: Any) -> dict[str, Any]:
    """Return resources as in a task's YAML, also from sky.Resources."""
    if given is None:
        return {}
    if hasattr(given, "to_yaml_config"):
        given = given.to_yaml_config()
    if not isinstance(given, Mapping):
        raise TypeError("resources is a mapping as in a SkyPilot YAML, or a sky.Resources")
    return dict(given)


def _folder(given: str | os.PathLike[str] | None) -> str:
    if given is None:
        return ""
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise ValueError(f"workdir {path} is not a folder")
    return str(path)


def _sources(mounts: Mapping[str, Any]) -> dict[str, Any]:
    """Return mounts with absolute local sources; buckets and the like are unchanged."""
    return {
        str(target): str(Path(source).expanduser().absolute())
        if isinstance(source, str | os.PathLike) and "://" not in str(source)
        else source
        for target, source in mounts.items()
    }
