"""The entries of mappings in a YAML text, and the text without some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import yaml

from monarch_client.spec.text_edits import YAML_LOADER, span_of

Span: TypeAlias = tuple[int, int]
Entry: TypeAlias = tuple[yaml.Node, yaml.Node]
Choice: TypeAlias = Callable[[yaml.Node], bool]


def without_entries(text: str, is_unwanted: Choice) -> str:
    """Return the text without the entries whose value is unwanted, nor mappings left empty.

    An entry that shares its line with others stays. yaml.YAMLError: the text cannot be read.
    """
    spans = sorted(
        lines
        for mapping in _mappings_of(text)
        for entry in mapping.value
        if (lines := _lines_emptied(text, entry, is_unwanted))
    )
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def lines_of(text: str, entry: Entry) -> Span | None:
    """Return the span of the lines of an entry; None if it shares its first line with others."""
    name, node = entry
    _, end = span_of(node, text, name.end_mark.index)
    start = text.rfind("\n", 0, name.start_mark.index) + 1
    line_end = text.find("\n", max(end, name.end_mark.index))
    is_alone = not text[start : name.start_mark.index].strip(" ")
    return (start, len(text) if line_end < 0 else line_end + 1) if is_alone else None


def _mappings_of(text: str) -> Iterator[yaml.MappingNode]:
    """Yield the mappings of a text, those that aliases repeat only once."""
    nodes: list[Any] = [*yaml.compose_all(text, Loader=YAML_LOADER)]
    seen: set[int] = set()
    while nodes:
        node = nodes.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            nodes += [value for _, value in node.value]
        else:
            nodes += node.value


def _lines_emptied(text: str, entry: Entry, is_unwanted: Choice) -> Span | None:
    """Return the lines of an entry that is unwanted, or holds such entries only."""
    name, node = entry
    if node.start_mark.index < name.end_mark.index or text.startswith("&", node.start_mark.index):
        return None  # an alias, or what aliases may repeat
    if not isinstance(node, yaml.MappingNode):
        return lines_of(text, entry) if is_unwanted(node) else None
    is_emptied = all(_lines_emptied(text, each, is_unwanted) for each in node.value)
    return lines_of(text, entry) if node.value and is_emptied else None
