"""Samples of hosts, frames of kind `metrics`: checked strictly, and kept in a shape of our own."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from jobs.logs.lines import storable
from monarch_client.runner.vocabulary.frames import METRICS
from monarch_client.runner.vocabulary.limits import (
    MAX_CELSIUS,
    MAX_GPUS,
    MAX_MEMORY_BYTES,
    MAX_WATTS,
)

_MOST_CHARS = 100

# What is None was not reported.
Percent = Annotated[float, Meta(ge=0, le=100)] | None
Bytes = Annotated[int, Meta(ge=0, le=MAX_MEMORY_BYTES)] | None
Rate = Annotated[float, Meta(ge=0, le=1e15)] | None


class Gpu(Struct):
    """One GPU of a sample."""

    index: Annotated[int, Meta(ge=0, le=1023)] | None = None
    name: Annotated[str, Meta(max_length=_MOST_CHARS)] | None = None
    utilization: Percent = None
    memory_used: Bytes = None
    memory_total: Bytes = None
    celsius: Annotated[float, Meta(ge=-273, le=MAX_CELSIUS)] | None = None
    watts: Annotated[float, Meta(ge=0, le=MAX_WATTS)] | None = None


class Sample(Struct):
    """A sample of a host."""

    cpu: Percent = None
    cpus: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    memory_used: Bytes = None
    memory_total: Bytes = None
    disk_used: Bytes = None
    disk_total: Bytes = None
    net_in: Rate = None
    net_out: Rate = None
    gpus: Annotated[list[Gpu], Meta(max_length=MAX_GPUS)] = []


def what_is_wrong_with_sample(frame: dict[str, Any]) -> str:
    """Describe what is wrong in a sentence; "" if nothing is. Rank and time were checked before."""
    try:
        msgspec.convert(frame, Sample)
    except ValueError as error:
        return f"it is not what a frame of kind {METRICS} may hold: {error}."
    return ""


def kept_of(frame: dict[str, Any]) -> dict[str, Any]:
    """Return the stored form of a valid sample: every key is there, and no other."""
    kept: dict[str, Any] = msgspec.to_builtins(msgspec.convert(frame, Sample))
    for gpu in kept["gpus"]:
        gpu["name"] = storable(gpu["name"] or "", _MOST_CHARS)
    return kept
