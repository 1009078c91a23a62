"""The accelerators that `resources` requests, in any notation that SkyPilot accepts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from monarch_client.spec.findings import Findings, SpecCode

# Of all nodes of a job: what the column that the queue counts by holds.
MOST_ACCELERATORS = 2_147_483_647


def accelerator_choices(resources: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the acceptable accelerators, the best first, each with its count on one node.

    Those of `any_of` and `ordered` are left out: each is a `resources` of its own.
    """
    wanted = resources.get("accelerators") or []
    if isinstance(wanted, Mapping):
        return [_counted(str(name), count) for name, count in wanted.items()]
    named = wanted.strip("{}").split(",") if isinstance(wanted, str) else map(str, wanted)
    return [_counted(text) for text in named]


def most_accelerators(resources: Mapping[str, Any]) -> tuple[str, int]:
    """Return the type, in capitals, and the count on one node; ("", 0) if there is none.

    Types are compared without case. Of several choices the one with the highest count is returned,
    of equal ones the first: the choice is known only once the machines exist, and none may
    circumvent a limit.
    """
    found = (pair for each in _alternatives(resources) for pair in accelerator_choices(each))
    name, count = max(found, key=lambda pair: pair[1], default=("", 0))
    return name.upper(), count


def known_count(resources: Mapping[str, Any]) -> int | None:
    """Return the number of accelerators on each node; None if choices differ in it.

    Only named ones are counted: a machine type alone counts as having none, as in the queue.
    """
    counts: set[int] = set()
    for each in _alternatives(resources):
        counts |= {count for _, count in accelerator_choices(each)} or {0}
    return counts.pop() if len(counts) == 1 else None


def leaves_accelerators_open(resources: Mapping[str, Any]) -> bool:
    """Whether a choice names a type of machine alone: only its cloud knows what that has."""
    return any(
        each.get("instance_type") and not each.get("accelerators")
        for each in _alternatives(resources)
    )


def accelerators_can_be_counted(values: dict[str, Any], _: str, findings: Findings) -> None:
    """Refuse more accelerators than a portal's database can count."""
    if findings.errors:
        # What was refused has no count.
        return
    nodes = values["num_nodes"]
    _, count = most_accelerators(values.get("resources") or {})
    if count * nodes > MOST_ACCELERATORS:
        message = (
            f"resources.accelerators: {count:,} on each of {nodes:,} nodes are {count * nodes:,}; "
            f"{MOST_ACCELERATORS:,} is the most."
        )
        findings.add("resources.accelerators", SpecCode.TOO_LARGE, message)


def _alternatives(resources: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each choice as whole resources: its keys override those beside it."""
    others = [*(resources.get("ordered") or []), *(resources.get("any_of") or [])]
    for each in others or [{}]:
        yield {**resources, **each}


def _counted(text: str, count: float | None = None) -> tuple[str, int]:
    # In YAML `{H100:8}` is a mapping of "H100:8" to nothing, and means 8.
    name, _, beside = text.strip().partition(":")
    return name, math.ceil(float(count or beside or 1))
