"""Amounts as people write them: WHAT=N, such as nodes=8 or gpus:H100=64."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_BETWEEN = re.compile(r"[\s,]+")


def amount_in(text: str) -> tuple[str, float] | None:
    """Return the resource and the number of WHAT=N; None if `text` has another form."""
    what, _, number = text.partition("=")
    if not what or not _NUMBER.fullmatch(number):
        return None
    return what, float(number) if "." in number else int(number)


def words_of(text: str) -> list[str]:
    """Split amounts that are separated by blanks or commas."""
    return [word for word in _BETWEEN.split(text) if word]


def text_of(amounts: Mapping[str, float]) -> str:
    """Return amounts as one text, in their order."""
    return " ".join(f"{what}={number:g}" for what, number in amounts.items())
