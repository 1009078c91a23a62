"""The choice of this machine's GPUs for a job: whole ones, held by one cluster at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

from jobs.errors import NoCapacityError
from monarch_client.runner.probes.nvml import LIBRARY_VARIABLE
from monarch_client.spec.accelerators import accelerator_choices

# For tests: nodes load this library in NVML's place. Read once, at the start.
_NVML_LIBRARY = os.environ.get("MPORTAL_NVML_LIBRARY", "")


def nvml_environment() -> dict[str, str]:
    """Return the variables by which a runner finds NVML; empty if the default NVML is loaded."""
    return {LIBRARY_VARIABLE: _NVML_LIBRARY} if _NVML_LIBRARY else {}


def nvml_directories() -> list[Path]:
    """List the directories that runners, which may see little of the machine, need for NVML."""
    return [Path(_NVML_LIBRARY).parent] if _NVML_LIBRARY else []


@cache
def gpus_of_machine() -> tuple[str, ...]:
    """Return the names of this machine's GPUs, as its driver reports them, by number."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return tuple(done.stdout.strip().splitlines()) if done.returncode == 0 else ()


def missing_gpus(spec: Mapping[str, Any]) -> str:
    """Return a sentence if this machine never has the GPUs that the job requests, else ""."""
    choices = _choices_of(spec)
    if not choices or _first_fitting(spec, frozenset()) is not None:
        return ""
    wanted = " or ".join(f"{count} {name}" for name, count in choices)
    present = gpus_of_machine()
    there = f"has {len(present)}: {', '.join(sorted(set(present)))}" if present else "has no GPU"
    return f"Each node requests {wanted}, but this machine {there}."


def choose_gpus(spec: Mapping[str, Any], taken: Set[int]) -> list[list[int]]:
    """Choose the GPUs of each node by number, none of them in `taken`. NoCapacityError: too few."""
    nodes = int(spec.get("num_nodes") or 1)
    if not _choices_of(spec):
        return [[] for _ in range(nodes)]
    found = _first_fitting(spec, taken)
    if found is None:
        raise NoCapacityError("The GPUs that this job requests are in use on this machine.")
    per_node = len(found) // nodes
    return [found[rank * per_node : (rank + 1) * per_node] for rank in range(nodes)]


def gpu_environment(gpus: list[int]) -> dict[str, str]:
    """Return the variables that show a node its own GPUs and no others."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} if gpus_of_machine() else {}
    return {"SKYPILOT_NUM_GPUS_PER_NODE": str(len(gpus)), **visible}


def _first_fitting(spec: Mapping[str, Any], taken: Set[int]) -> list[int] | None:
    """Return the GPUs of all nodes by the first choice that fits."""
    nodes = int(spec.get("num_nodes") or 1)
    for name, count in _choices_of(spec):
        fitting = [
            number
            for number, present in enumerate(gpus_of_machine())
            if name.lower() in present.lower() and number not in taken
        ]
        if len(fitting) >= count * nodes:
            return fitting[: count * nodes]
    return None


def _choices_of(spec: Mapping[str, Any]) -> list[tuple[str, int]]:
    return accelerator_choices(spec.get("resources") or {})
