"""Builds runner.pyz: the runner as one file that any Python 3.8 or newer starts.

The same sources give the same bytes, so that its digest names its version.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

_HERE = Path(__file__).parent
_MAIN = "import sys\n\nfrom monarch_client.runner.entry import main\n\nsys.exit(main())\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16
# The portal's side of it.
_ONLY_HERE = frozenset({"bundle.py", "boot.py"})


def build(target: Path) -> Path:
    """Write the zipapp to `target`, replacing it whole, and return it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    with new.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(_contents().items()):
                archive.writestr(_entry(name), content)
    new.replace(target)
    return target


def _contents() -> dict[str, bytes]:
    # The real monarch_client/__init__ would import what a node does not have.
    contents = {"__main__.py": _MAIN.encode(), "monarch_client/__init__.py": b""}
    for path in _HERE.rglob("*.py"):
        if path.name not in _ONLY_HERE:
            name = "monarch_client/runner/" + path.relative_to(_HERE).as_posix()
            contents[name] = path.read_bytes()
    return contents


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3
    return entry
