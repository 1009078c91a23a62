"""Cutting connections to PostgreSQL on their way, at the moments that hurt most."""

from __future__ import annotations

import random
import threading
from typing import Literal

from tests.faults.tcp_proxy import Look

# "commit": before it arrives. "answer": it is carried out, but not acknowledged. "bytes": anywhere.
Mode = Literal["commit", "answer", "bytes"]
COMMIT = b"COMMIT\0"
# One in so many commits; and where a connection breaks that breaks anywhere.
ONE_IN = 3
FEWEST_BYTES, MOST_BYTES = 2_000, 60_000


class Cuts:
    """A seeded choice of which connections break. It begins and ends with `is_on`."""

    def __init__(self, mode: Mode, seed: int) -> None:
        self.is_on = False
        self.made = 0
        self._mode = mode
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def look(self) -> Look:
        """Return the function that watches one connection."""
        return self._by_bytes() if self._mode == "bytes" else self._at_commits()

    def _by_bytes(self) -> Look:
        left = self._random.randint(FEWEST_BYTES, MOST_BYTES)

        def look(_from_client: bool, data: bytes) -> bool:
            nonlocal left
            if not self.is_on:
                return False
            left -= len(data)
            return left <= 0 and self._cut()

        return look

    def _at_commits(self) -> Look:
        is_waiting = False

        def look(from_client: bool, data: bytes) -> bool:
            nonlocal is_waiting
            if is_waiting:
                # Whatever comes now is the answer: it stays here.
                return not from_client and self._cut()
            if from_client and self.is_on and COMMIT in data and self._is_chosen():
                if self._mode == "commit":
                    return self._cut()
                is_waiting = True
            return False

        return look

    def _is_chosen(self) -> bool:
        with self._lock:
            return self._random.randrange(ONE_IN) == 0

    def _cut(self) -> bool:
        self.made += 1
        return True
