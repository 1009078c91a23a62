"""Private folders of programs, which hold keys, and the end of those whose programs were killed.

Each has a lock that its program holds: a folder whose lock is free belongs to no program any more.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_PREFIX = "mportal-"
_LOCK = "lock"
# A path of a Unix socket has at most 107 bytes: with its folder and name it is longer than this.
_LONGEST_PARENT = 80


class PrivateFolder:
    """A folder that only this user reads, for files and Unix sockets.

    `note`: what `sweep_notes` returns if it is left over. `outlives_login`: it is needed after the
    user has logged out, as by a program in the background.
    """

    def __init__(
        self, note: Mapping[str, Any] | None = None, *, outlives_login: bool = False
    ) -> None:
        parent = _lasting_parent() if outlives_login else _parent()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
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


def sweep() -> None:
    """Remove the folders of this user's programs that were killed, but for those with notes."""
    for folder in _folders():
        _swept(folder, with_note=False)


def sweep_notes() -> list[dict[str, Any]]:
    """Remove the folders of this user's programs that were killed; return their notes."""
    return [note for folder in _folders() if (note := _swept(folder, with_note=True))]


def _folders() -> list[Path]:
    parents = {_parent(), _lasting_parent()}
    return [folder for parent in parents for folder in parent.glob(f"{_PREFIX}*")]


def _parent() -> Path:
    """Return where the folders are: in memory, and until the user logs out, if there is such."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(runtime) if _is_usable(runtime) else _lasting_parent()


def _lasting_parent() -> Path:
    """Return where the folders are that are not removed when the user logs out."""
    default = tempfile.gettempdir()
    candidates = (default, "/tmp", "/var/tmp")  # noqa: S108 - made there by `mkdtemp`
    return Path(next(filter(_is_usable, candidates), default))


def _is_usable(folder: str) -> bool:
    is_short = 0 < len(os.fsencode(folder)) <= _LONGEST_PARENT
    return is_short and os.access(folder, os.W_OK | os.X_OK) and _is_trusted(Path(folder))


def _is_trusted(folder: Path) -> bool:
    """Whether no other user but root can replace what this one makes there."""
    status = folder.stat()
    is_for_all = (
        status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    )
    return status.st_uid in (0, os.getuid()) and not is_for_all


def _swept(folder: Path, *, with_note: bool) -> dict[str, Any] | None:
    """Remove a folder that no program holds, and return its note; None if one does.

    Without `with_note`, leave a folder that has one: its note is for another kind of program.
    """
    with suppress(OSError, ValueError, TypeError):
        # Others write to the same parent: a link or a folder of theirs is none of ours.
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return None
        with (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            note: dict[str, Any] = dict(json.load(lock))
            if not note or with_note:
                shutil.rmtree(folder, ignore_errors=True)
                return note
    return None
