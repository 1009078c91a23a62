"""The runner program, built once for each version of its source and kept by content."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import monarch_client.runner
from jobs.backends.local_folders import make_directory
from monarch_client.runner.bundle import build


def built_runner(directory: Path) -> Path:
    """The runner.pyz of this source, in `directory`/runners."""
    target = directory / "runners" / f"{_source_digest()}.pyz"
    if not target.exists():
        make_directory(target.parent, 0o711)
        build(target)
    return target


@cache
def _source_digest() -> str:
    """Once a process: a changed source takes effect when the portal restarts."""
    digest = hashlib.sha256()
    source = Path(monarch_client.runner.__path__[0])
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
