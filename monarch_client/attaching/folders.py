"""Private folders of programs, which hold keys, and the end of those whose programs were killed.

Each has a lock that its program holds: a folder whose lock is free belongs to no program any more.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_PREFIX = "mportal-"
_LOCK = "lock"


class PrivateFolder:
    """A folder that only this user reads. `note`: what `sweep` returns if it is left over."""

    def __init__(self, note: Mapping[str, Any] | None = None) -> None:
        # Short: a path of a Unix socket has 100 characters on some systems.
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
        new = self.path / f"{_LOCK}.new"
        self._lock = new.open("w")
        self._lock.write(json.dumps(dict(note or {})))
        self._lock.flush()
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Now that it is locked: no program finds it free before its owner has ended.
        new.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the folder. A repetition does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep() -> list[dict[str, Any]]:
    """Remove the folders of this user's programs that were killed; return their notes."""
    return [note for folder in _parent().glob(f"{_PREFIX}*") if (note := _swept(folder))]


def _parent() -> Path:
    """Return where the folders are: in memory, and until the user logs out, if there is such."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK | os.X_OK):
        return Path(runtime)
    return Path(tempfile.gettempdir())


def _swept(folder: Path) -> dict[str, Any] | None:
    """Remove a folder that no program holds, and return its note; None if one does."""
    with suppress(OSError, ValueError, TypeError):
        # Others write to the same parent: a link or a folder of theirs is none of ours.
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return None
        with (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            note: dict[str, Any] = dict(json.load(lock))
            shutil.rmtree(folder, ignore_errors=True)
            return note
    return None
