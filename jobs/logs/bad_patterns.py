"""Errors of RE2 about patterns, with the position of the mistake."""

from __future__ import annotations

import re


class BadPatternError(Exception):
    """RE2 does not take the pattern. `position`: where in it, in characters from 0, if known."""

    def __init__(self, message: str, position: int | None) -> None:
        super().__init__(message)
        self.position = position


def bad_pattern(text: str, error: Exception) -> BadPatternError:
    """Convert RE2's `error` about pattern `text`; it names what it met, not where."""
    reported = error.args[0] if error.args else b""
    message = reported.decode(errors="replace") if isinstance(reported, bytes) else str(reported)
    kind, _, fragment = message.partition(": ")
    if kind.startswith("missing )"):
        return BadPatternError(message, _open_parenthesis(text))
    place = text.find(fragment) if fragment else -1
    return BadPatternError(message, place if place >= 0 else None)


def _open_parenthesis(text: str) -> int | None:
    """Return the position at which the group begins that is never closed."""
    opened: list[int] = []
    in_class = False
    for place, sign in enumerate(re.sub(r"\\.", "..", text, flags=re.DOTALL)):
        if sign in "[]":
            in_class = sign == "["
        elif sign == "(" and not in_class:
            opened.append(place)
        elif sign == ")" and not in_class and opened:
            opened.pop()
    return opened[-1] if opened else None
