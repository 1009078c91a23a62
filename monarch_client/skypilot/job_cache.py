"""A SkyPilotJob's file: only its user may read it, and no other user's is read."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path

from monarch_client.skypilot.job_errors import CacheError

_WRITABLE_BY_OTHERS = 0o022


def write(job: object, filename: str) -> None:
    """Put the whole file there at once, readable by its owner only."""
    path = Path(os.path.realpath(filename))
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(fd, "wb") as file:
            pickle.dump(job, file)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)


def refuse_others(path: Path) -> None:
    """Raise CacheError if another user could have written the file: reading it runs code."""
    found = path.stat()
    if found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS:
        raise CacheError(
            f"{path} belongs to another user, or others may write to it: it is not read. Name "
            "another cached_path."
        )
