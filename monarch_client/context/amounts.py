"""Amounts of resources as exact integers: ten-thousandths of a CPU, a GPU, a byte and the like."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

from monarch_client.context.texts import check_text

UNIT = 10_000
CPU, GPU, MEMORY = "CPU", "GPU", "memory"
# A task without CPUs takes one of these, so that many of them do not start a process each at once.
PROCESS = "processes without CPU"
PROCESSES_PER_CPU = 8
LEAST_PROCESSES = 64
_GIB = 2**30

Amounts = dict[str, int]
# Equal shapes are interchangeable: whatever fits one fits the others.
Shape = tuple[tuple[str, int], ...]


def to_amounts(resources: Mapping[str, object]) -> Amounts:
    """Convert resources to exact amounts, leaving out zeros. ValueError: one is impossible."""
    amounts = {}
    for name, quantity in resources.items():
        check_text("the name of a resource", name)
        if isinstance(quantity, bool) or not isinstance(quantity, (int, float)):
            raise TypeError(f"{name}: a quantity is a number, and not {quantity!r}")
        if not math.isfinite(quantity) or quantity < 0:
            raise ValueError(f"{name}: a quantity cannot be negative, and is {quantity}")
        amount = round(quantity * UNIT)
        if quantity and not amount:
            raise ValueError(f"{name}: the smallest quantity is {1 / UNIT}, and not {quantity}")
        if name == GPU and amount > UNIT and amount % UNIT:
            raise ValueError(f"GPU: more than one is a whole number, and not {quantity}")
        if amount:
            amounts[name] = amount
    return amounts


def task_shape(resources: Mapping[str, float] | None) -> Shape:
    """Return what a task takes: one CPU by default."""
    amounts = {CPU: UNIT} if resources is None else to_amounts(resources)
    if CPU not in amounts:
        amounts[PROCESS] = UNIT
    return tuple(sorted(amounts.items()))


def actor_shape(resources: Mapping[str, float] | None) -> Shape:
    """Return what an actor takes: nothing by default."""
    return tuple(sorted(to_amounts(resources or {}).items()))


def own_resources(declared: Mapping[str, float] | None) -> Amounts:
    """Return the resources of this host; those `declared` replace what was found."""
    cpus = float(len(os.sched_getaffinity(0)))
    memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    found = {CPU: cpus, MEMORY: memory, GPU: float(len(own_gpus()))}
    return with_processes(to_amounts({**found, **(declared or {})}))


def with_processes(amounts: Amounts) -> Amounts:
    """Add the number of processes without CPU that a host runs at once."""
    processes = max(LEAST_PROCESSES, amounts.get(CPU, 0) // UNIT * PROCESSES_PER_CPU)
    return {**amounts, PROCESS: processes * UNIT}


def own_gpus() -> list[str]:
    """List the GPUs that CUDA would show to this process."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [each.strip() for each in visible.split(",") if each.strip() not in {"", "-1"}]
    devices = Path("/dev").glob("nvidia[0-9]*")
    return sorted((path.name.removeprefix("nvidia") for path in devices), key=int)


def as_text(name: str, amount: int) -> str:
    """Return an amount for people, such as `2 CPU` or `8 GiB memory`."""
    quantity = amount / UNIT
    if name == MEMORY:
        is_large = quantity >= _GIB / 10
        return f"{quantity / _GIB:.3g} GiB {name}" if is_large else f"{quantity:.0f} bytes {name}"
    return f"{quantity:.10g} {name}"
