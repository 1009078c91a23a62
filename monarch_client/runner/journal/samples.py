"""Samples of the hosts that wait for delivery: only the latest of each rank and kind.

Samples have no numbers and are not in the journal: the next one replaces an undelivered one.
"""

from __future__ import annotations

import threading

from monarch_client.runner.vocabulary.frames import METRICS

# Bytes that are sent or printed at once, so that lines do not wait.
MOST_BYTES = 128 * 1024
# Bytes of one push: enough for a thousand hosts with eight GPUs each.
MOST_PUSHED_BYTES = 512 * 1024


class Samples:
    """The latest samples. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[tuple[int, str], bytes] = {}
        self._is_closed = False

    def put(self, rank: int, line: bytes, kind: str = METRICS) -> None:
        """Replace the rank's last sample of this kind by `line`, an encoded frame."""
        with self._lock:
            if not self._is_closed and len(line) <= MOST_BYTES:
                # A rank that has waited longer goes first.
                self._latest[rank, kind] = line

    def take(self, most: int = MOST_BYTES) -> list[bytes]:
        """Remove and return samples of at most `most` bytes for one post."""
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
        """Drop all samples from now on: they are no longer wanted."""
        with self._lock:
            self._is_closed = True
            self._latest.clear()
