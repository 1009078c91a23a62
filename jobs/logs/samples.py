"""Samples of hosts, frames of kind `metrics`: checked strictly, and kept in a shape of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobs.logs.lines import storable
from monarch_client.runner.vocabulary.frames import METRICS
from monarch_client.runner.vocabulary.limits import (
    MAX_CELSIUS,
    MAX_GPUS,
    MAX_MEMORY_BYTES,
    MAX_WATTS,
)

_MOST_CHARS = 100
_MOST_RATE = 1e15

_Check = Callable[[Any], bool]


def _number(least: float, most: float) -> _Check:
    """Return a check for a finite number within bounds, or None: not reported."""
    return lambda value: (
        value is None
        # Neither true nor false are numbers here; nor is what JSON of Python's own calls NaN.
        # It is not within bounds either, nor infinite.
        or (type(value) in (int, float) and least <= value <= most)
    )


def _whole(most: int) -> _Check:
    return lambda value: value is None or (type(value) is int and 0 <= value <= most)


def _name(value: object) -> bool:
    return value is None or (type(value) is str and len(value) <= _MOST_CHARS)


_PERCENT = _number(0, 100)
_HOST: dict[str, _Check] = {
    "cpu": _PERCENT,
    "cpus": _whole(1_000_000),
    "memory_used": _whole(MAX_MEMORY_BYTES),
    "memory_total": _whole(MAX_MEMORY_BYTES),
    "disk_used": _whole(MAX_MEMORY_BYTES),
    "disk_total": _whole(MAX_MEMORY_BYTES),
    "net_in": _number(0, _MOST_RATE),
    "net_out": _number(0, _MOST_RATE),
}
_GPU: dict[str, _Check] = {
    "index": _whole(1023),
    "name": _name,
    "utilization": _PERCENT,
    "memory_used": _whole(MAX_MEMORY_BYTES),
    "memory_total": _whole(MAX_MEMORY_BYTES),
    "celsius": _number(-273, MAX_CELSIUS),
    "watts": _number(0, MAX_WATTS),
}


def what_is_wrong_with_sample(frame: dict[str, Any]) -> str:
    """Describe what is wrong in a sentence; "" if nothing is. Rank and time were checked before."""
    wrong = next((name for name, check in _HOST.items() if not check(frame.get(name))), "")
    if wrong:
        return f"its {wrong} is not what a frame of kind {METRICS} may hold."
    gpus: Any = frame.get("gpus", [])
    if type(gpus) is not list or len(gpus) > MAX_GPUS:
        return f"its gpus are not a list of at most {MAX_GPUS}."
    for gpu in gpus:
        if type(gpu) is not dict or not all(check(gpu.get(name)) for name, check in _GPU.items()):
            return "one of its gpus is not sound."
    return ""


def kept_of(frame: dict[str, Any]) -> dict[str, Any]:
    """Return the stored form of a valid sample: every key is there, and no other."""
    return {
        **{name: frame.get(name) for name in _HOST},
        "gpus": [
            {
                **{name: gpu.get(name) for name in _GPU},
                "name": storable(gpu.get("name") or "", _MOST_CHARS),
            }
            for gpu in frame.get("gpus", [])
        ],
    }
