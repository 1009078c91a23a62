"""The file systems that are mounted inside a folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_POINT = 4
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def mounts_in(folder: Path) -> list[Path]:
    """Return the paths of the mounts at or below a folder, which is an absolute path.

    Bind mounts of the same device count too; only Linux lists them.
    """
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return []
    real = os.fsencode(folder.resolve())
    points = [_unescaped(line.split(b" ")[_POINT]) for line in lines]
    found = [point[len(real) :] for point in points if (point + b"/").startswith(real + b"/")]
    return [folder / os.fsdecode(point.lstrip(b"/")) for point in found]


def _unescaped(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), text)
