"""Reads what a dead runner leaves: the frames that nobody acknowledged, and always its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.config import NodeFolder
from monarch_client.runner.frames import encoded
from monarch_client.runner.journal import last_acknowledged, read_leftovers

if TYPE_CHECKING:
    from typing import Any, Iterator


def read_last_words(root: Path) -> Iterator[bytes]:
    """Return the frames that nobody acknowledged on the node at `root`, then its verdict.

    The verdict comes even if the end frame was acknowledged: whoever did that need not be the
    portal, and an attempt that has ended must not be taken for lost and run again. Only the first
    verdict of an attempt counts, so that it does no harm to repeat it.
    """
    folder = NodeFolder(root)
    last, has_ended = last_acknowledged(folder.journal).get(0, 0), False
    for line in read_leftovers(folder.journal):
        frame = _frame_in(line)
        if frame.get("rank") == 0 and isinstance(frame.get("seq"), int):
            last = max(last, frame["seq"])
        has_ended = has_ended or frame.get("kind") == "end"
        yield line
    if not has_ended and folder.verdict.is_file() and not folder.verdict.is_symlink():
        verdict = _frame_in(folder.verdict.read_bytes())
        if verdict:
            at = round(folder.verdict.stat().st_mtime, 3)
            yield encoded({**verdict, "rank": 0, "seq": last + 1, "t": at, "kind": "end"})


def _frame_in(line: bytes) -> dict[str, Any]:
    try:
        frame = json.loads(line)
    except ValueError:
        return {}
    return frame if isinstance(frame, dict) else {}
