"""Small JSON files that several processes read and change."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def read_json(path: Path, default: Any = None) -> Any:
    """Read a JSON file; return the default if there is none."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default


def write_json(path: Path, data: Any) -> None:
    """Replace a file atomically, so that readers see the old or the new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    new.write_text(json.dumps(data))
    new.replace(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes and threads; the kernel frees it with its holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
