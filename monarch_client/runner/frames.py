"""Frames: what a runner tells the portal. Numbered here, one JSON object a line, ASCII only."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Iterable

    from monarch_client.runner.journal import Journal
    from monarch_client.runner.lines import Piece

_encode = json.JSONEncoder(separators=(",", ":")).encode
# A crash of the machine may cost lines, not what ends an attempt.
_SYNCED_KINDS = frozenset({"exit", "end"})


class Recorder:
    """Numbers the frames of one rank, without holes, and writes them to the journal.

    Safe from any thread. A recorder over an old journal goes on where that one stopped.
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
                {"kind": "line", "stream": stream, "text": piece.text, "more": piece.more}
                for piece in pieces
            ],
            may_lose=True,
        )

    def remark(self, text: str) -> None:
        """Tell the user something, in the runner's own stream."""
        self._append([_remark(text)])

    def _append(
        self, contents: list[dict[str, Any]], *, sync: bool = False, may_lose: bool = False
    ) -> None:
        with self._lock:
            lines = self._numbered([*self._loss(), *contents])
            last = self._seq + len(lines)
            if self._journal.append(self._rank, last, lines, sync=sync, may_lose=may_lose):
                self._seq, self._lost = last, 0
            else:
                # Their numbers are given again: what is missing is told in words.
                self._lost += len(contents)

    def _numbered(self, contents: list[dict[str, Any]]) -> list[bytes]:
        now = round(time.time(), 3)
        frames = (
            {"rank": self._rank, "seq": seq, "t": now, **content}
            for seq, content in enumerate(contents, self._seq + 1)
        )
        return [_encode(frame).encode("ascii") + b"\n" for frame in frames]

    def _loss(self) -> list[dict[str, Any]]:
        if not self._lost:
            return []
        return [_remark(f"{self._lost} lines are missing here: this node's disk was full.")]


def sample_line(rank: int, content: dict[str, Any]) -> bytes:
    """A sample of a host as an encoded frame."""
    return state_line(rank, "metrics", content)


def state_line(rank: int, kind: str, content: dict[str, Any]) -> bytes:
    """How something stands, as an encoded frame. It has no number: nobody waits for it."""
    frame = {"rank": rank, "t": round(time.time(), 3), "kind": kind, **content}
    return _encode(frame).encode("ascii") + b"\n"


def _remark(text: str) -> dict[str, Any]:
    return {"kind": "line", "stream": "portal", "text": text, "more": False}


def number_of(line: bytes) -> tuple[int, int]:
    """(rank, seq) of an encoded frame; of one without a number, a sample, (rank, 0)."""
    frame = json.loads(line)
    return int(frame["rank"]), int(frame.get("seq", 0))


def replacement_for(line: bytes, why: str) -> bytes:
    """A line frame in the place of one that the portal refused: numbers must have no holes."""
    frame = json.loads(line)
    note = "A frame of kind {!r} was refused by the portal: {}".format(frame.get("kind"), why)
    kept = {name: frame[name] for name in ("rank", "seq", "t")}
    kept.update(kind="line", stream="portal", text=note[:2000], more=False)
    return _encode(kept).encode("ascii") + b"\n"


def stored_prefix(lines: list[bytes], acknowledged: dict[int, int]) -> list[bytes]:
    """The leading lines that the other side has, by the highest number it has of each rank."""
    for index, line in enumerate(lines):
        rank, seq = number_of(line)
        if seq > acknowledged.get(rank, 0):
            return lines[:index]
    return lines
