"""The folder of the collected static files: below `.cache/static`, named after their sources.

`monarch_portal.collect_static` fills it. Changed sources are collected again at the next start of a
portal; until then, and with `DEBUG`, files are served from where they are.
"""

from __future__ import annotations

import os
import zlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCES = CHECKOUT / "jobs" / "static"
PACKAGES = ("django-htmx", "drf-spectacular-sidecar", "whitenoise")


def collected() -> Path | None:
    """Return the folder of collected files, or None where files are served from their sources."""
    return folder() if folder().is_dir() else None


@cache
def folder() -> Path:
    """Return the folder for what is collected from the sources as they are now."""
    return CHECKOUT / ".cache" / "static" / _fingerprint()


def _fingerprint() -> str:
    """Return a name for the present sources: their paths, sizes and times, and the packages."""
    parts = [f"{name}=={version(name)}" for name in PACKAGES]
    for root, _, names in sorted(os.walk(SOURCES)):
        for name in sorted(names):
            state = os.stat(Path(root, name))  # noqa: PTH116 - a third of Path.stat's time
            # In whole seconds: an image keeps no more.
            parts.append(f"{root}/{name} {state.st_size} {int(state.st_mtime)}")
    return f"{zlib.crc32(chr(10).join(parts).encode()):08x}"
