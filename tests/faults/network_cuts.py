"""Cutting the HTTP connections of nodes and portal on their way, where it hurts most."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Literal

from tests.faults.tcp_proxy import Look

# "request": in the middle of what is posted. "answer": it has its effect, but is not acknowledged.
Moment = Literal["request", "answer"]


class NetworkCuts:
    """A breaker that, from `begin` to `end`, cuts posts at two moments by turns, all else at once.

    The portal's proof passes, since a runner posts nothing before it. What is posted in one piece
    breaks when it is answered. `made`: how often, since it began.
    """

    def __init__(self) -> None:
        self.made: dict[Moment, int] = {"request": 0, "answer": 0}
        self._is_on = False
        self._turns: Iterator[Moment] = itertools.cycle(("request", "answer"))
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Break open and new connections from now on."""
        self.made = {"request": 0, "answer": 0}
        self._is_on = True

    def end(self) -> None:
        """Let everything pass."""
        self._is_on = False

    def look(self) -> Look:
        """Return the function that watches one connection."""
        breaks_at: Moment | None = None
        is_proof = False

        def look(from_client: bool, data: bytes) -> bool:
            nonlocal breaks_at, is_proof
            if from_client:
                is_proof = data.startswith(b"GET /api/v1/proof?")
            if is_proof or not self._is_on:
                return False
            if from_client and data.startswith(b"POST "):
                breaks_at = self._next()
                return False
            if from_client and breaks_at == "answer":
                return False
            if breaks_at is not None:
                self._note("request" if from_client else "answer")
            return True

        return look

    def _next(self) -> Moment:
        with self._lock:
            return next(self._turns)

    def _note(self, moment: Moment) -> None:
        with self._lock:
            self.made[moment] += 1
