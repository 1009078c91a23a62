"""Leaves out of a driver's output what Monarch prints when a mesh admin begins to listen.

It was `mportal_runtime` that started it; the lines tell the user nothing but paths of the node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.lines import Piece
    from monarch_client.runner.processes import OnPieces

_FIRST = re.compile(r"Mesh admin server listening on https?://\S+")
_OTHERS = re.compile(r"  - (?:Root node|Mesh tree|API docs|TUI): |  +cargo run -p \w+_admin_tui")
_MOST_OTHERS = 5


def is_admin_line(text: str) -> bool:
    """Whether Monarch prints such a line of an admin, be it ours or the user's own."""
    return _FIRST.fullmatch(text) is not None or _OTHERS.match(text) is not None


class WithoutAdminLines:
    """Passes on all that is written, but for the first such lines when `are_ours` says so."""

    def __init__(self, write: OnPieces, are_ours: Callable[[], bool]) -> None:
        self._write = write
        self._are_ours = are_ours
        self._has_begun = False
        self._left = _MOST_OTHERS

    def __call__(self, stream: str, pieces: list[Piece]) -> None:
        """Write `pieces`, what is left of them."""
        kept = pieces if self._left == 0 else [each for each in pieces if not self._is_one(each)]
        if kept:
            self._write(stream, kept)

    def _is_one(self, piece: Piece) -> bool:
        if not self._has_begun:
            self._has_begun = _FIRST.fullmatch(piece.text) is not None and self._are_ours()
            return self._has_begun
        is_other = self._left > 0 and _OTHERS.match(piece.text) is not None
        self._left -= is_other
        return is_other
