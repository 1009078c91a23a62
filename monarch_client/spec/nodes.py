"""A specification as a tree that remembers lines: what YAML text and JSON objects both become."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]{0,18})")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]{1,4})?")
_NOTHING = {"", "~", "null", "Null", "NULL"}
_YES = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}
_NO = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}

Scalar = None | bool | int | float | str
Value = Scalar | tuple["Node", ...] | dict[str, "Entry"]


@dataclass(frozen=True, slots=True)
class Node:
    """A value, the line it begins on, and for scalars the text as it was written.

    `span` is its position in the source; `size` counts the nodes below, itself included.
    """

    value: Any
    line: int | None = None
    text: str = ""
    span: tuple[int, int] | None = None
    size: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's value and the key's line."""

    line: int | None
    node: Node


def content_of(node: Node) -> Any:
    """Return the value of a node as JSON has it."""
    if isinstance(node.value, dict):
        return {key: content_of(entry.node) for key, entry in node.value.items()}
    if isinstance(node.value, tuple):
        return [content_of(each) for each in node.value]
    return node.value


def plain_value(text: str) -> Scalar:
    """Return the value of an unquoted YAML scalar.

    Whatever is a number, a flag or nothing here is so to SkyPilot's reader too. Only plain decimals
    are numbers: 010, 0x1F, 12:30 and 2024-01-01 stay text, because what YAML makes of them is
    rarely what was meant.
    """
    if text in _NOTHING:
        return None
    if text in _YES or text in _NO:
        return text in _YES
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text
