"""Frames as a runner posts them, for tests."""

from __future__ import annotations

import json
from typing import Any

# Long ago for the portal's clock, so that times are never "in the future".
T0 = 1_700_000_000.0


def frame(seq: int, kind: str = "line", *, rank: int = 0, **fields: Any) -> dict[str, Any]:
    """Return one sound frame; a line by default."""
    if kind == "line":
        fields = {"stream": "stdout", "text": f"r{rank} s{seq}", "more": False, **fields}
    return {"rank": rank, "seq": seq, "t": T0 + seq / 100, "kind": kind, **fields}


def body(*frames: dict[str, Any]) -> bytes:
    """Encode the frames as NDJSON."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in frames)


def lines(first: int, last: int, *, rank: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """Make line frames with the numbers `first` to `last`."""
    return [frame(seq, rank=rank, **fields) for seq in range(first, last + 1)]
