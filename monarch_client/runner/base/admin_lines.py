"""What Monarch prints when a mesh admin begins to listen, such as one of the user's own."""

from __future__ import annotations

import re

_FIRST = re.compile(r"Mesh admin server listening on https?://\S+")
_OTHERS = re.compile(r"  - (?:Root node|Mesh tree|API docs|TUI): |  +cargo run -p \w+_admin_tui")


def is_admin_line(text: str) -> bool:
    """Whether it is one of these lines, which are no evidence of anything."""
    return _FIRST.fullmatch(text) is not None or _OTHERS.match(text) is not None
