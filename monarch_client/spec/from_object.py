"""The reader of JSON objects as nodes, within the same bounds as YAML text; without lines."""

from __future__ import annotations

import math
from typing import Any

from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.from_yaml import DEEPEST, MOST_BYTES, MOST_NODES, has_odd_character
from monarch_client.spec.nodes import Entry, Node

_MOST_DIGITS = 10**18


def read_object(value: Any, findings: Findings) -> Node:
    """Convert `value` into nodes; `findings.refuse` ends it if that is impossible."""
    return _Reading(findings).node(value, "", 0)


class _Reading:
    """One walk, counting as it goes: a cycle runs into the depth, a bomb into the count."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._count = 0
        self._bytes = 0

    def node(self, value: Any, path: str, depth: int) -> Node:
        self._bounded(depth)
        if isinstance(value, dict):
            return self._mapping(value, path, depth)
        if isinstance(value, list | tuple):
            items = (self.node(each, f"{path}[{i}]", depth + 1) for i, each in enumerate(value))
            return Node(tuple(items))
        return self._scalar(value, path)

    def _bounded(self, depth: int) -> None:
        self._count += 1
        if depth > DEEPEST:
            message = f"Nested deeper than {DEEPEST} levels."
            self._findings.refuse(SpecCode.TOO_DEEP, message)
        if self._count > MOST_NODES or self._bytes > MOST_BYTES:
            message = f"More than {MOST_NODES:,} values or {MOST_BYTES // 1024} KiB of text."
            self._findings.refuse(SpecCode.TOO_LARGE, message)

    def _mapping(self, value: dict[Any, Any], path: str, depth: int) -> Node:
        entries: dict[str, Entry] = {}
        for key, each in value.items():
            if not isinstance(key, str):
                message = f"Keys must be text, not {type(key).__name__}."
                self._findings.refuse(SpecCode.WRONG_TYPE, message)
            self._text(key, path)
            entries[key] = Entry(None, self.node(each, join(path, key), depth + 1))
        return Node(entries)

    def _scalar(self, value: Any, path: str) -> Node:
        if isinstance(value, str):
            self._text(value, path)
            return Node(value, text=value)
        if value is None:
            return Node(None)
        if isinstance(value, bool):
            return Node(value, text="true" if value else "false")
        if isinstance(value, int) and abs(value) < _MOST_DIGITS:
            return Node(int(value), text=str(value))
        if isinstance(value, float) and math.isfinite(value):
            return Node(float(value), text=str(value))
        message = f"{path or 'The specification'} holds a {type(value).__name__} JSON cannot carry."
        return self._findings.refuse(SpecCode.WRONG_TYPE, message, path=path)

    def _text(self, text: str, path: str) -> None:
        self._bytes += len(text)
        if has_odd_character(text):
            message = f"{path or 'A key'} holds a control character, or half of a character."
            self._findings.refuse(SpecCode.BAD_CHARACTER, message, path=path)
