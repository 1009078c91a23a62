"""Samples of the hosts on their way to the portal: the latest of each rank and kind, and no more.

They bear no numbers and lie in no journal: one that is not delivered gives way to the next.
"""

from __future__ import annotations

import threading

from monarch_client.runner.vocabulary.frames import METRICS

# Of what is sent or printed at once, so that lines are never kept waiting.
MOST_BYTES = 128 * 1024
# Of one that is pushed, so that a thousand hosts with eight GPUs each have their turn in time.
MOST_PUSHED_BYTES = 512 * 1024


class Samples:
    """Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[tuple[int, str], bytes] = {}
        self._is_closed = False

    def put(self, rank: int, line: bytes, kind: str = METRICS) -> None:
        """Keep a sample, an encoded frame, in the place of the rank's last one of its kind."""
        with self._lock:
            if not self._is_closed and len(line) <= MOST_BYTES:
                # A rank that has waited longer goes first.
                self._latest[rank, kind] = line

    def take(self, most: int = MOST_BYTES) -> list[bytes]:
        """Samples of at most `most` bytes for one post; they are not here any more."""
        taken: list[bytes] = []
        size = 0
        with self._lock:
            for key, line in list(self._latest.items()):
                size += len(line)
                if size > most:
                    break
                taken.append(self._latest.pop(key))
        return taken

    def close(self) -> None:
        """Keep none from now on: nobody wants them."""
        with self._lock:
            self._is_closed = True
            self._latest.clear()
