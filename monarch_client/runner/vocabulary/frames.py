"""Frames, the reports of a runner to the portal: one JSON object a line, ASCII only.

`recorder` numbers frames and `journal` stores them; both depend on this module, never the reverse.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary import streams

if TYPE_CHECKING:
    from typing import Any

# The kinds of frames. The last three have no numbers: the next one replaces one that is lost.
LINE, STAGE, WORKER, EXIT, STACKS, END = "line", "stage", "worker", "exit", "stacks", "end"
METRICS, MESH, TASKS = "metrics", "mesh", "tasks"
UNNUMBERED = frozenset({METRICS, MESH, TASKS})

_encode = json.JSONEncoder(separators=(",", ":")).encode


def encoded(frame: dict[str, Any]) -> bytes:
    """Return the frame as one line."""
    return _encode(frame).encode("ascii") + b"\n"


def remark(text: str) -> dict[str, Any]:
    """Return a line for the user in the runner's own stream, not yet numbered."""
    return {"kind": LINE, "stream": streams.PORTAL, "text": text, "more": False}


def sample_line(rank: int, content: dict[str, Any]) -> bytes:
    """Return a sample of a host as an encoded frame."""
    return state_line(rank, METRICS, content)


def state_line(rank: int, kind: str, content: dict[str, Any]) -> bytes:
    """Return a state as an encoded frame. It has no number, since it is not acknowledged."""
    frame = {"rank": rank, "t": round(time.time(), 3), "kind": kind, **content}
    return encoded(frame)


def number_of(line: bytes) -> tuple[int, int]:
    """Return (rank, seq) of an encoded frame; (rank, 0) if it has no number, as samples."""
    frame = json.loads(line)
    return int(frame["rank"]), int(frame.get("seq", 0))


def kind_of(line: bytes) -> str:
    """Return the kind of an encoded frame."""
    return str(json.loads(line).get("kind"))


def replacement_for(line: bytes, why: str) -> bytes:
    """Return a line frame that replaces a refused frame: numbers must have no gaps."""
    frame = json.loads(line)
    note = "A frame of kind {!r} was refused by the portal: {}".format(frame.get("kind"), why)
    kept = {name: frame[name] for name in ("rank", "seq", "t")}
    kept.update(kind=LINE, stream=streams.PORTAL, text=note[:2000], more=False)
    return encoded(kept)


def stored_prefix(lines: list[bytes], acknowledged: dict[int, int]) -> list[bytes]:
    """Return the leading lines that the other side has stored; `acknowledged` is by rank."""
    for index, line in enumerate(lines):
        rank, seq = number_of(line)
        if seq > acknowledged.get(rank, 0):
            return lines[:index]
    return lines
