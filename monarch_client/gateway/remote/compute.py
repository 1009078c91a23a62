"""Machines as a program describes them, and the job that the portal makes of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monarch_client.gateway.remote.request import DEFAULT_MESH
from monarch_client.spec.project_files import NO_DEFAULTS, ProjectDefaults, project_defaults

# How long the workers outlive a program that was killed.
IDLE_MINUTES = 30
# The type of `gpu` where no description names one.
GPU_VARIABLE = "MPORTAL_GPU_TYPE"
_FIELDS = ("gpu", "gpu_type", "cpu", "memory", "replicas", "image", "infra")


@dataclass(frozen=True)
class Image:
    """An image, and commands that every node runs before the workers start.

    `image_id` is one of SkyPilot's, such as docker:nvcr.io/nvidia/pytorch:25.09-py3. `name` is for
    people.
    """

    name: str = ""
    image_id: str = ""
    commands: tuple[str, ...] = ()

    def pip_install(self, packages: Sequence[str]) -> Image:
        """Return the image with these packages; torchmonarch is installed where it is missing."""
        others = [each for each in packages if each != "torchmonarch"]
        if not others:
            return self
        return self.run_bash(f"python3 -m pip install {shlex.join(others)}")

    def run_bash(self, command: str) -> Image:
        """Return the image with one more command."""
        return replace(self, commands=(*self.commands, command))


@dataclass(frozen=True)
class Compute:
    """The machines of a job: `replicas` of them, each with so many GPUs of a type.

    `cpu` and `memory` are what each has at least, as in `cpu="32"` and `memory="256Gi"`; `infra` is
    SkyPilot's, such as slurm or aws/us-east-1.
    """

    gpu: int = 0
    gpu_type: str = ""
    cpu: str | int = ""
    memory: str | int = ""
    replicas: int = 1
    image: Image | None = None
    infra: str = ""


def defaults_for_program(folder: Path) -> ProjectDefaults:
    """Return the defaults of a folder's project files for a job whose program runs here.

    They lack `run`, since the program is the driver, and a local `workdir`, which is not uploaded.
    InvalidFileError: a file is wrong.
    """
    defaults = project_defaults(folder)
    workdir = defaults.values.get(("workdir",))
    is_local = workdir is not None and isinstance(workdir.value, str)
    return defaults.excluding([("run",), *([("workdir",)] if is_local else [])])


def spec_of(
    compute: Any,
    name: str | None,
    meshes: Mapping[str, int],
    defaults: ProjectDefaults = NO_DEFAULTS,
) -> dict[str, Any]:
    """Return the specification of a job whose workers wait for this program.

    `compute` is a `Compute`, or another object or mapping with some of its fields, or a job
    specification as a mapping. ValueError, TypeError: what cannot be meant.
    """
    spec = _own_spec(compute)
    if name is not None:
        spec = {"name": name, **spec}
    if meshes:
        spec["portal"] = {**(spec.get("portal") or {}), "meshes": dict(meshes)}
    spec = defaults.completed_object(spec)
    size = int(spec.get("num_nodes", 1))
    portal = dict(spec.get("portal") or {})
    portal["meshes"] = portal.get("meshes") or {DEFAULT_MESH: size}
    total = sum(portal["meshes"].values())
    if "num_nodes" in spec and total != size:
        raise ValueError(f"meshes need {total} hosts, and compute has {size}")
    portal.setdefault("idle", {"minutes": IDLE_MINUTES})
    return {**spec, "num_nodes": total, "portal": {**portal, "gateway": True}}


def _own_spec(compute: Any) -> dict[str, Any]:
    """Return what `compute` itself says, as a specification."""
    if not isinstance(compute, Mapping) or compute.keys() & set(_FIELDS):
        return _described(_fields_of(compute))
    if isinstance(compute.get("workdir"), str):
        raise ValueError(
            "compute: a local workdir is uploaded by `mportal dev` and `mportal submit` only. "
            "Use a git workdir, or an image with the code."
        )
    return dict(compute)


def _fields_of(compute: Any) -> dict[str, Any]:
    known = vars(Compute())
    if isinstance(compute, Mapping):
        if unknown := sorted(map(str, compute.keys() - known.keys())):
            raise ValueError(f"compute has no {', '.join(unknown)}: it has {', '.join(known)}")
        found = {name: compute.get(name) for name in known}
    else:
        found = {name: getattr(compute, name, None) for name in known}
        if all(value is None for value in found.values()):
            raise TypeError(
                "compute is a Compute, an object or mapping with some of its fields "
                f"({', '.join(known)}), or a job specification as a mapping"
            )
    fields = {name: known[name] if value is None else value for name, value in found.items()}
    if not isinstance(fields["replicas"], int) or fields["replicas"] < 1:
        raise ValueError(f"compute: replicas is a number of hosts, not {fields['replicas']!r}")
    return fields


def _described(fields: Mapping[str, Any]) -> dict[str, Any]:
    image = fields["image"]
    setup = "\n".join(["set -e", *commands]) if (commands := getattr(image, "commands", ())) else ""
    resources = {
        "accelerators": _accelerators(fields),
        "cpus": _at_least(fields["cpu"]),
        "memory": _at_least(fields["memory"]),
        "infra": fields["infra"],
        "image_id": image if isinstance(image, str) else getattr(image, "image_id", ""),
    }
    spec = {"num_nodes": fields["replicas"], "setup": setup, "resources": _given(resources)}
    return _given(spec)


def _accelerators(fields: Mapping[str, Any]) -> str:
    if not fields["gpu"]:
        return ""
    type_ = fields["gpu_type"] or os.environ.get(GPU_VARIABLE, "")
    if not type_:
        raise ValueError(
            f"compute: which GPUs? Set gpu_type, or {GPU_VARIABLE} in the environment, to a type "
            "such as H100. See: mportal infra"
        )
    return f"{type_}:{fields['gpu']}"


def _at_least(amount: str | int) -> str:
    text = str(amount) if amount else ""
    return f"{text}+" if text and not text.endswith("+") else text


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
