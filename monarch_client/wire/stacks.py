"""Stack dumps of the Python processes of a node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import CHOICES, Moment

StackState: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "StackState"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStacks:
    """A Python process of the job."""

    pid: int | None
    command: str
    text: Annotated[str, Meta(description="Its threads, the innermost call of each first.")]
    why: Annotated[str, Meta(description="Why there is no text.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDump:
    """The answer of a rank, or the request while there is none."""

    id: int
    rank: int
    pid: Annotated[int | None, Meta(description="The one process that was requested.")]
    asked_by: str
    asked_at: Moment
    ended_at: Moment | None
    state: StackState
    why: Annotated[str, Meta(description="Why it failed, and what to do.")]
    left_out: Annotated[int, Meta(description="Processes that are not listed.")]
    processes: list[ProcessStacks]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackGroup:
    """Processes whose main threads have equal stacks."""

    ranks: list[int]
    processes: int
    where: Annotated[str, Meta(description="The call that says most, with its file and line.")]
    frames: Annotated[list[str], Meta(description="The calls, the innermost first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """The stack dumps of one attempt."""

    attempt: Annotated[int | None, Meta(description="Its number.")]
    is_over: bool
    is_final: Annotated[bool, Meta(description="No further dump will come.")]
    can_ask: Annotated[bool, Meta(description="Whether you may request another now.")]
    ranks: int
    dumps: Annotated[list[StackDump], Meta(description="The latest ones, newest first.")]
    groups: Annotated[
        list[StackGroup],
        Meta(description="The newest dumps of several ranks together, by equal stacks."),
    ] = field(default_factory=list)
    asked_together: Annotated[
        list[int], Meta(description="The numbers of the dumps of `groups`.")
    ] = field(default_factory=list)
