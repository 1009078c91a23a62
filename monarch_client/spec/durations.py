"""Lengths of time as people write them: 90m, 12h, 1h30m, or seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from monarch_client.spec.findings import Findings
from monarch_client.spec.nodes import Node
from monarch_client.spec.shapes import Schema, Shape

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PATTERN = r"(?:[0-9]{1,9}[smhdwSMHDW]){1,5}|[0-9]{1,9}"


@dataclass(frozen=True)
class Duration(Shape):
    """A length of time; in normal form a whole number of seconds."""

    most_s: int = 366 * 86_400
    takes: ClassVar[tuple[type, ...]] = (str, int)

    @property
    def wants(self) -> str:
        return "a length of time such as 90m, 12h, 1h30m or a number of seconds, up to 366d"

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "string", "pattern": f"^(?:{_PATTERN})$"},
                {"type": "integer", "minimum": 1, "maximum": self.most_s},
            ]
        }

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        seconds = node.value if isinstance(node.value, int) else seconds_in(node.value)
        if seconds is None or not 1 <= seconds <= self.most_s:
            findings.bad_value(node, path, self.wants)
        return seconds


def seconds_in(text: str) -> int | None:
    """Return the seconds that `text` names, or None if it names no length of time."""
    if not re.fullmatch(_PATTERN, text):
        return None
    if text.isdigit():
        return int(text)
    parts = re.findall(r"([0-9]+)([a-z])", text.lower())
    return sum(int(count) * _UNITS_S[unit] for count, unit in parts)


def text_of(seconds: int) -> str:
    """Return a length of time in its largest whole unit, such as 12h, as `seconds_in` reads it."""
    whole = [unit for unit, length in _UNITS_S.items() if seconds % length == 0 and unit != "w"]
    unit = whole[-1]
    return f"{seconds // _UNITS_S[unit]}{unit}"
