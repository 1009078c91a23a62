"""Set keys in the text of a specification, and keep comments and line numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from monarch_client.spec.yaml_text import in_one_line

# libyaml reads the same language ten times as fast; every wheel of PyYAML brings it.
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOM = "\ufeff"
_ALIAS = re.compile(r"\s*:\s*(\*[^\s,\]}]+)")


def set_key(text: str, path: str, value: Any) -> str:
    """Return the YAML mapping `text` with the key at `path`, as portal.hold, set to `value`."""
    if text.startswith(_BOM):
        # libyaml does not count it.
        return _BOM + set_key(text.removeprefix(_BOM), path, value)
    root = yaml.compose(text, Loader=YAML_LOADER)
    keys = path.split(".")
    if not isinstance(root, yaml.MappingNode):
        return _entry(keys, value) + "\n"
    if root.flow_style or found_in(root, keys[0]):
        return _set_in(root, text, keys, value)
    # At the end, so that the lines before it keep their numbers.
    end = root.end_mark.index
    before = text[:end] if text[:end].endswith("\n") else text[:end] + "\n"
    return f"{before}{_entry(keys, value)}\n{text[end:]}"


def line_before_edits(original: str, edited: str, line: int) -> int:
    """Return the line of `original` that is the `line` of `edited`, both counted from 1.

    `edited` is what `set_key` made of it: it changes lines in their place, and adds others. One
    that was added maps to the line after it.
    """
    old, new = original.split("\n"), edited.split("\n")
    place = 0
    for number, text in enumerate(new[: min(line, len(new)) - 1]):
        is_added = place < len(old) and text != old[place] and new[number + 1] == old[place]
        place += not is_added
    return max(1, min(place + 1, len(old)))


def _set_in(mapping: yaml.MappingNode, text: str, keys: Sequence[str], value: Any) -> str:
    found = found_in(mapping, keys[0])
    if found is None:
        return _added_to(mapping, text, _entry(keys, value))
    name, node = found
    start, end = span_of(node, text, name.end_mark.index)
    if len(keys) > 1 and isinstance(node, yaml.MappingNode) and start == node.start_mark.index:
        return _set_in(node, text, keys[1:], value)
    # What follows keeps its lines.
    written = _value(keys[1:], value) + "\n" * text.count("\n", start, end)
    return text[:start] + (written if start < end else f" {written}") + text[end:]


def found_in(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the key and value nodes of `key`; None if the mapping lacks it."""
    return next((pair for pair in mapping.value if pair[0].value == key), None)


def span_of(node: yaml.Node, text: str, after: int) -> tuple[int, int]:
    """Return the begin and end of the value whose key ends at `after`."""
    start, end = node.start_mark.index, node.end_mark.index
    if start < after and (alias := _ALIAS.match(text, after)):
        return alias.span(1)
    # A block ends where the next key begins: what is between belongs to the text.
    return start, start + len(text[start:end].rstrip())


def _added_to(mapping: yaml.MappingNode, text: str, entry: str) -> str:
    """Return the text with a new first entry of the mapping."""
    if mapping.flow_style:
        start = text.index("{", mapping.start_mark.index) + 1
        return text[:start] + entry + (", " if mapping.value else "") + text[start:]
    first = mapping.value[0][0].start_mark
    return f"{text[: first.index]}{entry}\n{' ' * first.column}{text[first.index :]}"


def _entry(keys: Sequence[str], value: Any) -> str:
    return f"{keys[0]}: {_value(keys[1:], value)}"


def _value(keys: Sequence[str], value: Any) -> str:
    """Return `value` below `keys` in one line."""
    for key in reversed(keys):
        value = {key: value}
    return in_one_line(value)
