"""Which accelerators `resources` ask for, in any of the ways in which SkyPilot lets it be said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def accelerator_choices(resources: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The accelerators that would do, the best first, each with its count for one node.

    Those of `any_of` and `ordered` are not looked at: each is a `resources` of its own.
    """
    wanted = resources.get("accelerators") or []
    if isinstance(wanted, Mapping):
        return [(str(name), math.ceil(float(count or 1))) for name, count in wanted.items()]
    named = wanted.strip("{}").split(",") if isinstance(wanted, str) else map(str, wanted)
    pairs = [text.strip().partition(":") for text in named]
    return [(name, math.ceil(float(count or 1))) for name, _, count in pairs]


def first_accelerators(resources: Mapping[str, Any]) -> tuple[str, int]:
    """Type (in capitals: it is compared without case) and count for one node; ("", 0) if none.

    Of several choices the first counts: which one it becomes is known only when it is had.
    """
    choices = [resources, *(resources.get("ordered") or []), *(resources.get("any_of") or [])]
    for choice in choices:
        for name, count in accelerator_choices(choice):
            return name.upper(), count
    return "", 0
