"""Recognition of the lines that Monarch prints when a mesh admin starts to listen."""

from __future__ import annotations

import re

_FIRST = re.compile(r"Mesh admin server listening on https?://\S+")
_OTHERS = re.compile(r"  - (?:Root node|Mesh tree|API docs|TUI): |  +cargo run -p \w+_admin_tui")


def is_admin_line(text: str) -> bool:
    """Whether a line is such output, which is no evidence of an error."""
    return _FIRST.fullmatch(text) is not None or _OTHERS.match(text) is not None
