"""The modules of JavaScript that a page's script imports, for `modulepreload`.

A browser finds an import only when it has read the module that names it. With a list it requests
all of them at once.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "static"
IMPORT = re.compile(r"""^(?:import|export)\b[^;"]*"(\.{1,2}/[^"]+)";""", re.MULTILINE)


@cache
def imported_by(script: str) -> tuple[str, ...]:
    """Return the modules that a script imports, and those that they import, each once.

    Args:
        script: its path as static files have it, such as `jobs/js/log.js`; so are the results.
    """
    found: dict[str, None] = {}
    unread = [script]
    while unread:
        module = unread.pop()
        folder = posixpath.dirname(module)
        for match in IMPORT.finditer((SOURCES / module).read_text(encoding="utf-8")):
            name = posixpath.normpath(posixpath.join(folder, match[1]))
            if name not in found:
                found[name] = None
                unread.append(name)
    return tuple(found)
