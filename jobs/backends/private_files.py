"""Files and directories of the portal that other users cannot read, and their removal."""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any


def make_directory(path: Path, mode: int) -> None:
    """Create a directory with exactly this mode, or close an existing one that is more open.

    Missing parents are created so that other users can pass through, but not list them.
    """
    if not path.parent.exists():
        make_directory(path.parent, 0o711)
    with suppress(FileExistsError):
        path.mkdir()
        path.chmod(mode)
        return
    if stat.S_IMODE(path.stat().st_mode) & ~mode:
        path.chmod(mode)


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Write JSON that only the owner may read, whole or not at all."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    draft.replace(path)


def remove_tree(path: Path) -> None:
    """Delete a file or a tree, also where its owner took away the right to. Silent if gone."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        _open_up(path)
        shutil.rmtree(path)


def _open_up(path: Path) -> None:
    path.chmod(stat.S_IRWXU)
    for directory, subdirectories, _ in os.walk(path):
        for name in subdirectories:
            subdirectory = Path(directory, name)
            if not subdirectory.is_symlink():
                subdirectory.chmod(stat.S_IRWXU)
