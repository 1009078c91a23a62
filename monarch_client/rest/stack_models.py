"""Stack dumps as values: where the Python processes of a node stood."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ProcessStacks:
    """One Python process; `why` says why it has no `text`."""

    pid: int | None
    command: str
    text: str
    why: str


@dataclass(frozen=True)
class StackDump:
    """What a rank has answered. `state`: asked, done, or failed, and then `why`."""

    id: int
    rank: int
    pid: int | None
    asked_by: str
    asked_at: datetime
    ended_at: datetime | None
    state: str
    why: str
    left_out: int
    processes: list[ProcessStacks]


@dataclass(frozen=True)
class Stacks:
    """The dumps of one attempt, newest first. `can_ask`: whether one may ask for another."""

    attempt: int | None
    is_over: bool
    is_final: bool
    can_ask: bool
    ranks: int
    dumps: list[StackDump]
