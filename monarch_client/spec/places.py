"""The places of keys, entries and list items in a YAML text, and the text with one changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from monarch_client.spec.entries import lines_of
from monarch_client.spec.text_edits import YAML_LOADER, found_in, span_of
from monarch_client.spec.yaml_text import STEP, as_block, as_scalar, in_one_line

# The keys of mappings from the root on; a number is an index of a list.
Keys: TypeAlias = Sequence[str | int]

_COMMA_AFTER = re.compile(r"\s*,[ \t]*")
_COMMA_BEFORE = re.compile(r",\s*\Z")
_DASH = re.compile(r"[ \t]*(-)[ \t]+\Z")
_BLANKS: Any = re.compile(r"([ \t]*\n)*")
_WORD = re.compile(r"\w+")


class FormError(ValueError):
    """A text or a change that the form does not take."""


@dataclass(frozen=True, slots=True)
class Source:
    """A value as YAML text of one line, which is written as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """A value in its mapping or list. `name`: the node of its key; None in a list."""

    parent: Any
    name: yaml.Node | None
    node: yaml.Node

    def span(self, text: str) -> tuple[int, int]:
        """Return the begin and end of the value."""
        if self.name is not None:
            return span_of(self.node, text, self.name.end_mark.index)
        start, end = self.node.start_mark.index, self.node.end_mark.index
        if not self.parent.start_mark.index <= start < self.parent.end_mark.index:
            raise FormError("an item that repeats another value (*) cannot be changed here.")
        return start, start + len(text[start:end].rstrip())


def places_of(text: str, keys: Keys) -> tuple[Any, list[Place]]:
    """Return the root of a text and the places of the keys, as far as it has them."""
    root: Any = yaml.compose(text, Loader=YAML_LOADER)
    node, places = root, []
    for key in keys:
        pair: Any = None
        if isinstance(node, yaml.MappingNode) and isinstance(key, str):
            pair = found_in(node, key)
        elif isinstance(node, yaml.SequenceNode) and key in range(len(node.value)):
            pair = (None, node.value[key])
        if pair is None:
            break
        places.append(Place(node, *pair))
        node = pair[1]
    return root, places


def with_value(text: str, keys: Keys, value: Any, *, has_blocks: bool = True) -> str:
    """Return the text with `value` at `keys`; several lines become a block if `has_blocks`."""
    root, places = places_of(text, keys)
    if not isinstance(root, yaml.MappingNode):
        return f"{text}{_entry(keys, value, 0, has_blocks=has_blocks)}\n"
    below = keys[len(places) :]
    collection = places[-1].node if places else root
    kind = yaml.SequenceNode if below and isinstance(below[0], int) else yaml.MappingNode
    if below and isinstance(collection, kind) and (collection.value or not places):
        return _with_entry(text, collection, below, value, has_blocks=has_blocks)
    place = places[-1]
    start, end = place.span(text)
    if place.parent.flow_style:
        return f"{text[:start]}{_flow(below, value)}{text[end:]}"
    column = _column(text, place)
    written = _written(below, value, column, has_blocks=has_blocks)
    name_end = start if place.name is None else place.name.end_mark.index
    if start < end and not written.startswith("\n") and "\n" not in text[name_end:start]:
        return f"{text[:start]}{written.lstrip(' ')}{text[end:]}"
    after = text.index(":", name_end) + 1
    return f"{text[:after]}{written}{text[max(after, end) :]}"


def without(text: str, keys: Keys, *, has_blanks: bool = True) -> str:
    """Return the text without what is at `keys`, nor the collections that it would leave empty.

    `has_blanks`: the blank lines after it stay, which belong to a block before it that keeps them.
    """
    _, places = places_of(text, keys)
    if len(places) < len(keys):
        return text
    while len(places) > 1 and len(places[-1].parent.value) == 1:
        places.pop()
    place = places[-1]
    start, end = place.span(text)
    begin = start if place.name is None else place.name.start_mark.index
    if place.parent.flow_style:
        if comma := _COMMA_AFTER.match(text, end):
            return text[:begin] + text[comma.end() :]
        return _COMMA_BEFORE.sub("", text[:begin]) + text[end:]
    lines = _lines(text, place)
    if lines is None:
        raise FormError("it shares its line with others.")
    end = lines[1] if has_blanks else _BLANKS.match(text, lines[1]).end()
    return text[: lines[0]] + text[end:]


def renamed(text: str, keys: Keys, name: str) -> str:
    """Return the text with another name for the entry at `keys`."""
    _, places = places_of(text, keys)
    place = places[-1]
    if len(places) < len(keys) or place.name is None:
        return text
    start, end = place.name.start_mark.index, place.name.end_mark.index
    return text[:start] + _key(name, is_flow=place.parent.flow_style) + text[end:]


def _lines(text: str, place: Place) -> tuple[int, int] | None:
    """Return the span of the lines of an entry or item; None if it shares them with others."""
    if place.name is not None:
        return lines_of(text, (place.name, place.node))
    start, end = place.span(text)
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    is_alone = _DASH.fullmatch(text[line_start:start])
    return (line_start, len(text) if line_end < 0 else line_end + 1) if is_alone else None


def _column(text: str, place: Place) -> int:
    """Return the column of a key, or of the dash of an item."""
    if place.name is not None:
        return place.name.start_mark.column
    start, _ = place.span(text)
    line_start = text.rfind("\n", 0, start) + 1
    dash = _DASH.search(text[line_start:start])
    if dash is None:
        raise FormError("this list cannot be changed here.")
    return dash.start(1)


def _with_entry(text: str, parent: Any, keys: Keys, value: Any, *, has_blocks: bool) -> str:
    """Return the text with a new last entry or item of a collection."""
    if parent.flow_style:
        end = parent.end_mark.index - 1
        before = text[:end].rstrip()
        comma = ", " if parent.value and not before.endswith(",") else " " * bool(parent.value)
        return f"{before}{comma}{_flow_entry(keys, value)}{text[end:]}"
    last = parent.value[-1]
    place = Place(parent, *last) if isinstance(last, tuple) else Place(parent, None, last)
    _, end = place.span(text)
    if place.name is not None:
        end = max(end, place.name.end_mark.index)
    if isinstance(place.node, yaml.ScalarNode) and place.node.value.endswith("\n\n"):
        end = max(end, text.rfind("\n", 0, place.node.end_mark.index))  # they may be its own
    line_end = text.find("\n", end)
    before, after = (
        (f"{text}\n", "") if line_end < 0 else (text[: line_end + 1], text[line_end + 1 :])
    )
    entry = _entry(keys, value, _column(text, _first(parent)), has_blocks=has_blocks)
    return f"{before}{entry}\n{after}"


def _first(parent: Any) -> Place:
    first = parent.value[0]
    return Place(parent, *first) if isinstance(first, tuple) else Place(parent, None, first)


def _entry(keys: Keys, value: Any, column: int, *, has_blocks: bool) -> str:
    name = "-" if isinstance(keys[0], int) else f"{_key(keys[0])}:"
    return f"{' ' * column}{name}{_written(keys[1:], value, column, has_blocks=has_blocks)}"


def _written(keys: Keys, value: Any, column: int, *, has_blocks: bool) -> str:
    """Return what follows the colon of a key, or the dash of an item, in this column."""
    if keys:
        return "\n" + _entry(keys, value, column + STEP, has_blocks=has_blocks)
    if isinstance(value, dict) and value and has_blocks:
        entries = (
            _entry([key], each, column + STEP, has_blocks=True) for key, each in value.items()
        )
        return "".join(f"\n{entry}" for entry in entries)
    block = as_block(value, column) if has_blocks and isinstance(value, str) else None
    return f" {block or (value.text if isinstance(value, Source) else as_scalar(value))}"


def _flow_entry(keys: Keys, value: Any) -> str:
    name = "" if isinstance(keys[0], int) else f"{_key(keys[0], is_flow=True)}: "
    return f"{name}{_flow(keys[1:], value)}"


def _flow(keys: Keys, value: Any) -> str:
    """Return `value` below `keys` in one line."""
    if keys:
        entry = _flow_entry(keys, value)
        return f"[{entry}]" if isinstance(keys[0], int) else f"{{{entry}}}"
    return value.text if isinstance(value, Source) else in_one_line(value)


def _key(name: str | int, *, is_flow: bool = False) -> str:
    text = as_scalar(str(name))
    return in_one_line(str(name)) if is_flow and not _WORD.fullmatch(text) else text
