"""Attempts with their stages, workers and diagnoses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from monarch_client.wire.values import Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of an attempt; `state` is pending, active, done, failed or stopped.

    "stopped": it was ended on purpose, which is no failure.
    """

    name: str
    label: str
    state: str
    started_at: Moment | None
    ended_at: Moment | None
    duration_s: float | None
    detail: str
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One host of an attempt."""

    rank: int
    mesh: str
    address: str
    status: str
    python: str
    pid: int | None
    exit_code: int | None
    detail: str
    ready_at: Moment | None
    ended_at: Moment | None
    ssh: Annotated[
        str, Meta(description="The command that reaches the node; empty where it is not known.")
    ] = ""
    last_line_at: Annotated[
        Moment | None, Meta(description="When its program last wrote a line to the log.")
    ] = None
    is_silent: Annotated[
        bool, Meta(description="It has written nothing for much longer than most other ranks.")
    ] = False
    ended_after: Annotated[
        int | None, Meta(description="The rank that failed, after which the portal ended this one.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A failure that was recognized: its `code` is stable, the rest is for people."""

    code: str
    title: str
    evidence: Annotated[str, Meta(description="The line that shows it.")]
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a job."""

    id: int
    number: int
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None
    stop_reason: str
    message: str
    hint: str
    exit_code: int | None
    cluster_name: str
    infra: str = ""
    resources: str = ""
    usd_per_hour: Annotated[Usd | None, Meta(description="Of all nodes together.")] = None
    usd: Annotated[Usd | None, Meta(description="Its share of the cost of its cluster.")] = None
    diagnosis: Diagnosis | None = None
    log_removed_at: Annotated[
        Moment | None, Meta(description="When its log was removed for its age.")
    ] = None
    stages: list[Stage]
    workers: list[Worker]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCode:
    """The digest of the archive that the next attempt starts with."""

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrder:
    """An order to end the attempt."""

    grace_s: Annotated[float, Meta(description="The seconds that programs may take to end.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOrder:
    """An order to dump the stacks of a rank's Python processes, or only of the one with `pid`."""

    id: int
    rank: int
    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FramesAnswer:
    """The answer to a runner: what was stored, and what it is to do. Most have `acked` alone."""

    acked: Annotated[dict[str, int], Meta(description="The highest stored number of each rank.")]
    stop: StopOrder | UnsetType = UNSET
    stacks: list[StackOrder] | UnsetType = UNSET
    gateway: Annotated[
        bool | UnsetType,
        Meta(description="Whether a program wants to attach, so that the head node connects."),
    ] = UNSET
