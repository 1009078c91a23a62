"""Write small files of a node: notes for a later runner, and private files."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_note(path: Path, text: str) -> bool:
    """Put `text` in the place of what the file held; False, and no change, on a full disk."""
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(text)
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
