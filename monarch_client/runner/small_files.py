"""Small files that a later runner reads: there whole, or as they were before."""

from __future__ import annotations

import contextlib
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
