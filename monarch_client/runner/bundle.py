"""Build runner.pyz: the runner as one file that any Python 3.8 or newer starts.

The same sources give the same bytes, so that its digest names its version.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

_CLIENT = Path(__file__).parent.parent
_MODULES = ("runner/**/*.py", "crash_points.py")
_MAIN = "import sys\n\nfrom monarch_client.runner.entry import main\n\nsys.exit(main())\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16
# The portal's side of the runner.
_ONLY_HERE = frozenset({"runner/bundle.py", "runner/boot.py"})


def build(target: Path) -> Path:
    """Write the zipapp to `target`, replacing it whole, and return it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    with new.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents().items()):
                archive.writestr(_entry(name), content)
    new.replace(target)
    return target


def contents() -> dict[str, bytes]:
    """Return the content of each file of the bundle, by its name there."""
    # The real monarch_client/__init__ would import what a node does not have.
    files = {"__main__.py": _MAIN.encode(), "monarch_client/__init__.py": b""}
    for pattern in _MODULES:
        for path in _CLIENT.glob(pattern):
            name = path.relative_to(_CLIENT).as_posix()
            if name not in _ONLY_HERE:
                files["monarch_client/" + name] = path.read_bytes()
    return files


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3
    return entry
