"""Set, rename and remove single entries of a specification's text as a person would write them.

Everything else stays byte for byte. `text_edits` writes values into one line instead, so that the
lines of a text that is sent keep their numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import yaml

from monarch_client.spec.findings import Findings
from monarch_client.spec.from_yaml import read_yaml
from monarch_client.spec.nodes import plain_value
from monarch_client.spec.places import (
    FormError,
    Keys,
    Source,
    places_of,
    renamed,
    with_value,
    without,
)
from monarch_client.spec.text_edits import YAML_LOADER
from monarch_client.spec.yaml_text import in_one_line

_BOM = "\ufeff"
_COMMENT = re.compile(r"(?<!\S)#.*")


def check_text(text: str) -> None:
    """Raise InvalidSpecErrors for what the parser refuses, FormError if it is no mapping."""
    findings = Findings()
    root = read_yaml(text, findings)
    findings.raise_if_any()
    if root.value is not None and not isinstance(root.value, dict):
        raise FormError("the text is not a mapping of keys, such as run: echo hello.")


def set_field(text: str, path: str, value: Any) -> str:
    """Return the text with `value` at a path such as portal.priority, as `set_entry` does."""
    return set_entry(text, path.split("."), value)


def set_entry(text: str, keys: Keys, value: Any) -> str:
    """Return the YAML mapping `text` with `value` at `keys`; None removes what is there.

    yaml.YAMLError: the text cannot be read. FormError: other values or a comment would be lost.
    """
    if value is None:
        ways = [
            lambda whole: without(whole, keys),
            lambda whole: without(whole, keys, has_blanks=False),
        ]
        return _checked(text, keys, lambda before: _without(before, keys), ways)
    written = value.text if isinstance(value, Source) else in_one_line(value)
    meant = _meaning(node_at(written, []))
    # One line is less pretty than a block, but takes the place of any value.
    ways = [
        lambda whole: with_value(whole, keys, value),
        lambda whole: with_value(whole, keys, value, has_blocks=False),
    ]
    changed = _checked(text, keys, lambda before: _with(before, keys, meant), ways)
    if _comments(text) - _comments(changed):
        raise FormError(f"{_name(keys)} has a comment that would be lost.")
    return changed


def rename_entry(text: str, keys: Keys, name: str) -> str:
    """Return the text with another name for an entry. YAMLError, FormError: as `set_entry`."""
    if name == keys[-1]:
        return text
    if node_at(text, keys) is None or node_at(text, [*keys[:-1], name]) is not None:
        raise FormError(f"{keys[-1]} cannot be named {name}.")
    parent = _meaning(node_at(text, keys[:-1]))
    content = {(name if key == keys[-1] else key): each for key, each in parent.items()}
    ways = [lambda whole: renamed(whole, keys, name)]
    return _checked(text, keys, lambda before: _with(before, keys[:-1], content), ways)


def node_at(text: str, keys: Keys) -> Any:
    """Return the node of what `text` gives at `keys`; None if it gives nothing."""
    root, places = places_of(text, keys)
    if len(places) < len(keys):
        return None
    return places[-1].node if places else root


def field_of(text: str, path: str) -> Any:
    """Return what `text` gives at `path`, untyped scalars as text; None if it gives nothing."""
    node = node_at(text, path.split("."))
    return None if node is None else untyped(node)


def untyped(node: yaml.Node) -> Any:
    """Return the content of a node, with the texts of scalars as they were written."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: untyped(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [untyped(each) for each in node.value]
    return None if is_null(node) else node.value


def is_null(node: yaml.Node) -> bool:
    """Whether a node gives no value."""
    is_scalar = isinstance(node, yaml.ScalarNode) and not node.style
    return is_scalar and plain_value(node.value) is None


def _checked(
    text: str, keys: Keys, expect: Callable[[Any], Any], ways: list[Callable[[str], str]]
) -> str:
    """Return the text that the first way makes which changes only what `expect` changes."""
    if text.startswith(_BOM):
        # libyaml does not count it.
        return _BOM + _checked(text.removeprefix(_BOM), keys, expect, ways)
    end = "" if not text or text.endswith("\n") else "\n"
    # Where only the end of the last line is missing, it may be added.
    for before in dict.fromkeys((text, text + end)):
        expected = expect(_meaning(node_at(before, [])))
        for way in ways:
            changed = way(text + end)
            for made in (changed.removesuffix(end), changed):
                if _means(made, expected):
                    return made
    raise FormError(f"{_name(keys)} cannot be changed here, since other values depend on it.")


def _means(text: str, expected: Any) -> bool:
    try:
        return bool((_meaning(node_at(text, [])) or {}) == expected)
    except yaml.YAMLError:
        return False


def _meaning(node: Any) -> Any:
    """Return a node as plain values that are equal where a reader of YAML finds no difference."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _meaning(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_meaning(each) for each in node.value]
    if node is None or is_null(node):
        return None
    kind = str if node.style else type(plain_value(node.value))
    return kind.__name__, node.value


def _with(content: Any, keys: Keys, value: Any) -> Any:
    """Return `content`, as `_meaning` makes it, with `value` at `keys`."""
    if not keys:
        return value
    key = keys[0]
    if content and isinstance(content, dict if isinstance(key, int) else list):
        raise FormError("a list cannot become a mapping here, nor a mapping a list.")
    if isinstance(key, int):
        items = list(content) if isinstance(content, list) else []
        below = items[key] if key < len(items) else None
        return [*items[:key], _with(below, keys[1:], value), *items[key + 1 :]]
    entries = content if isinstance(content, dict) else {}
    return {**entries, key: _with(entries.get(key), keys[1:], value)}


def _without(content: Any, keys: Keys) -> Any:
    """Return `content` without what is at `keys`, nor the collections that it leaves empty."""
    key: Any = keys[0]
    if not _has(content, key) or (len(keys) > 1 and not isinstance(content[key], dict | list)):
        return content or {}
    below = _without(content[key], keys[1:]) if len(keys) > 1 else None
    if isinstance(content, list):
        return [*content[:key], *([below] if below else []), *content[key + 1 :]]
    if below or (len(keys) > 1 and not content[key]):
        return {**content, key: below}
    return {name: each for name, each in content.items() if name != key}


def _has(content: Any, key: str | int) -> bool:
    if isinstance(content, list):
        return isinstance(key, int) and 0 <= key < len(content)
    return isinstance(content, dict) and key in content


def _name(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _comments(text: str) -> Counter[str]:
    """Return the comments: what follows # between scalars, or beside the | of a block."""
    found: Counter[str] = Counter()
    end = 0
    for event in yaml.parse(text, Loader=YAML_LOADER):
        if isinstance(event, yaml.ScalarEvent):
            marks: Any = event  # the stubs of PyYAML know no marks
            start, stop = marks.start_mark.index, marks.end_mark.index
            found.update(_COMMENT.findall(text, end, start))
            if event.style in {"|", ">"}:
                found.update(_COMMENT.findall(text[start:stop].partition("\n")[0]))
            end = stop
    found.update(_COMMENT.findall(text, end))
    return found
