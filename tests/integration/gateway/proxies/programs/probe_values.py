"""Values and errors that both sides import: no monarch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag


@dataclass
class Report:
    """A result with named fields."""

    rank: int
    losses: list[float]


class Access(Flag):
    """Flags of the user's code."""

    READ = 1
    WRITE = 2


class DivergedError(ValueError):
    """An exception of the user's code."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step
