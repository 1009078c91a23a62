"""The envelopes of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Part of a list. `next` and `previous` are cursors; None at the ends."""

    results: list[T]
    next: str | None = None
    previous: str | None = None
