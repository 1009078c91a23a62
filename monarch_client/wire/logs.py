"""Lines of log, as pages and search results have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from msgspec import Meta

from monarch_client.wire.page import Page
from monarch_client.wire.values import Moment

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line. `more`: it is very long, and the next line of its rank continues it.

    `line` and `attempt` count from 1 in order of arrival.
    """

    line: int
    attempt: int
    rank: int
    stream: str
    at: Moment
    text: str
    more: bool = False

    @property
    def position(self) -> tuple[int, int]:
        """Return the position of the line in the job's whole log."""
        return self.attempt, self.line


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHit(LogLine):
    """A line that matches. `spans`: where, in characters of `text` without escape sequences."""

    spans: list[Annotated[list[int], Meta(min_length=2, max_length=2)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage(Page[T], Generic[T]):
    """Part of a log. `removed` names, in a sentence, the attempts whose log was removed."""

    removed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHitPage(LogPage[T], Generic[T]):
    """The lines that one search request found. `last` is the last line that it read."""

    last: str
    scanned_bytes: int
