"""Parts of a specification that this machine cannot do: reported before the job is queued."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.backends.local.folders import OWN_NAMES, NodeFolder
from jobs.backends.local.gpus import missing_gpus

Obstacle = tuple[str, str]

_GIBIBYTE = 1024**3
_UPLOAD = "upload:"
_UNITS = {"k": 1024**-2, "m": 1024**-1, "g": 1.0, "t": 1024.0, "p": 1024.0**2}
# Labels are for a cloud's books, and local jobs cost nothing.
_FULFILLED = {"infra", "accelerators", "cpus", "memory", "labels", "max_hourly_cost"}
_WHY_NOT = {
    "ports": "Every port of a local job is open to this machine and to no other.",
    "image_id": "Local jobs run in the portal's own Python, not in a container.",
    "use_spot": "This machine has no spot price.",
    "any_of": "There is one choice here: this machine.",
    "ordered": "There is one choice here: this machine.",
    "disk_size": "Local jobs share this machine's disk.",
}

_NO_TARGET = (
    "Uploads go to the working directory or to a path below ~, but not over what the portal itself "
    f"puts there ({', '.join(OWN_NAMES)})."
)


def find_obstacles(spec: Mapping[str, Any], capacity_nodes: int) -> list[Obstacle]:
    """List each part that this machine cannot do as (path, sentence); empty if it can do all."""
    return [
        *_too_many_nodes(spec, capacity_nodes),
        *_resources(spec),
        *_folders(spec),
    ]


def _too_many_nodes(spec: Mapping[str, Any], capacity_nodes: int) -> Iterator[Obstacle]:
    wanted = int(spec.get("num_nodes") or 1)
    if wanted > capacity_nodes:
        yield (
            "num_nodes",
            f"This machine runs at most {capacity_nodes} nodes at once; the job requests {wanted}.",
        )


def _resources(spec: Mapping[str, Any]) -> Iterator[Obstacle]:
    resources = spec.get("resources") or {}
    for key, value in resources.items():
        if key not in _FULFILLED and value not in (None, False, [], {}):
            why = _WHY_NOT.get(key, "It means something to a cloud only.")
            yield f"resources.{key}", f"The local backend cannot provide {key}. {why}"
    if complaint := missing_gpus(spec):
        yield "resources.accelerators", complaint
    cpus = os.cpu_count() or 1
    if _number(resources.get("cpus")) > cpus:
        yield "resources.cpus", f"This machine has {cpus} CPUs; the job requests more."
    memory_gib = math.ceil(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIBIBYTE)
    if _number(resources.get("memory")) > memory_gib:
        yield "resources.memory", f"This machine has {memory_gib} GiB; the job requests more."


def _number(amount: Any) -> float:
    """Parse the number in 4, "4+", "16GB+"; with a unit, return gigabytes."""
    found = re.match(r"(\d+(?:\.\d+)?)\s*([kmgtp]?)", str(amount or "").lower())
    return float(found[1]) * _UNITS[found[2] or "g"] if found else 0.0


def _folders(spec: Mapping[str, Any]) -> Iterator[Obstacle]:
    for target, source in (spec.get("file_mounts") or {}).items():
        path = f"file_mounts.{target}"
        if not _is_upload(source):
            yield path, "The local backend takes uploads only; it mounts no buckets."
        elif NodeFolder(Path("node")).path_for(target) is None:
            yield path, _NO_TARGET
    if spec.get("volumes"):
        yield "volumes", "The local backend has no volumes."


def _is_upload(source: Any) -> bool:
    return isinstance(source, str) and source.startswith(_UPLOAD)
