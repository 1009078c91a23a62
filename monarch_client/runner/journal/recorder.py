"""The recorder of one rank: it numbers frames and writes them to the journal."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary.frames import END, EXIT, LINE, encoded, remark

if TYPE_CHECKING:
    from typing import Any, Iterable

    from monarch_client.runner.base.lines import Piece
    from monarch_client.runner.journal.journal import Journal

# A crash of the machine may cost lines, not what ends an attempt.
_SYNCED_KINDS = frozenset({EXIT, END})


class Recorder:
    """A writer that numbers the frames of one rank, without gaps, and adds them to the journal.

    Safe from any thread. On an old journal it continues the numbers.
    """

    def __init__(self, journal: Journal, rank: int) -> None:
        self._journal = journal
        self._rank = rank
        self._seq = journal.highest.get(rank, 0)
        self._lock = threading.Lock()
        self._lost = 0

    def write(self, kind: str, **fields: Any) -> None:
        """Record one frame."""
        self._append([dict(fields, kind=kind)], sync=kind in _SYNCED_KINDS)

    def write_lines(self, stream: str, pieces: Iterable[Piece]) -> None:
        """Record lines that arrived together."""
        self._append(
            [
                {"kind": LINE, "stream": stream, "text": piece.text, "more": piece.more}
                for piece in pieces
            ],
            may_lose=True,
        )

    def remark(self, text: str) -> None:
        """Record a message to the user, in the runner's own stream."""
        self._append([remark(text)])

    def _append(
        self, contents: list[dict[str, Any]], *, sync: bool = False, may_lose: bool = False
    ) -> None:
        with self._lock:
            lines = self._numbered([*self._loss(), *contents])
            last = self._seq + len(lines)
            if self._journal.append(self._rank, last, lines, sync=sync, may_lose=may_lose):
                self._seq, self._lost = last, 0
            else:
                # Their numbers are used again: a message reports how many lines are missing.
                self._lost += len(contents)

    def _numbered(self, contents: list[dict[str, Any]]) -> list[bytes]:
        now = round(time.time(), 3)
        frames = (
            {"rank": self._rank, "seq": seq, "t": now, **content}
            for seq, content in enumerate(contents, self._seq + 1)
        )
        return [encoded(frame) for frame in frames]

    def _loss(self) -> list[dict[str, Any]]:
        if not self._lost:
            return []
        return [remark(f"{self._lost} lines are missing here: this node's disk was full.")]
