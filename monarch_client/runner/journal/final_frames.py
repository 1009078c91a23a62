"""Read the unacknowledged frames that a dead runner left, and always its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.journal.journal import last_acknowledged, read_leftovers
from monarch_client.runner.vocabulary.frames import END, encoded

if TYPE_CHECKING:
    from typing import Any, Iterator


def read_final_frames(root: Path) -> Iterator[bytes]:
    """Return the unacknowledged frames on the node at `root`, then its verdict.

    Includes the verdict even if the end frame was acknowledged: another program than the portal
    may have done that, and an attempt that has ended must not be taken for lost and run again.
    Only the first verdict of an attempt counts, so repeating it does no harm.
    """
    folder = NodeFolder(root)
    last, has_ended = last_acknowledged(folder.journal).get(0, 0), False
    for line in read_leftovers(folder.journal):
        frame = _frame_in(line)
        if frame.get("rank") == 0 and isinstance(frame.get("seq"), int):
            last = max(last, frame["seq"])
        has_ended = has_ended or frame.get("kind") == END
        yield line
    if not has_ended and (end := verdict_frame(folder, last + 1)):
        yield end


def verdict_frame(folder: NodeFolder, seq: int) -> bytes:
    """Return the node's verdict as a frame of rank 0 with number `seq`; b"" if there is none."""
    if not folder.verdict.is_file() or folder.verdict.is_symlink():
        return b""
    verdict = _frame_in(folder.verdict.read_bytes())
    at = round(folder.verdict.stat().st_mtime, 3)
    return encoded({**verdict, "rank": 0, "seq": seq, "t": at, "kind": END}) if verdict else b""


def _frame_in(line: bytes) -> dict[str, Any]:
    try:
        frame = json.loads(line)
    except ValueError:
        return {}
    return frame if isinstance(frame, dict) else {}
