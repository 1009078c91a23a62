"""Set and remove keys in the text of a specification as a person would write them.

Comments, order and all other lines stay. `text_edits` writes JSON into one line instead, so that
the lines of a text that is sent keep their numbers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import yaml

from monarch_client.spec.findings import Findings
from monarch_client.spec.from_yaml import read_yaml
from monarch_client.spec.nodes import plain_value
from monarch_client.spec.text_edits import YAML_LOADER, found_in, set_key, span_of

_STEP = 2
_COMMENT = re.compile(r"(?<!\S)#.*")


class FormError(ValueError):
    """A text or a change that the form does not take."""


def check_text(text: str) -> None:
    """Raise InvalidSpecErrors for what the parser refuses, FormError if it is no mapping."""
    root = read_yaml(text, Findings())
    if root.value is not None and not isinstance(root.value, dict):
        raise FormError("the text is not a mapping of keys, such as run: echo hello.")


def set_field(text: str, path: str, value: Any) -> str:
    """Return the YAML mapping `text` with `value` at `path`, as portal.priority; None removes it.

    yaml.YAMLError: the text cannot be read. FormError: other values or a comment would be lost.
    """
    keys, text = path.split("."), text + _end_of_line(text)
    changed, expected = _changed(text, keys, value), _expected(text, keys, value)
    if value is not None and not values_equal(changed, expected):
        # Something unusual: less pretty, but right.
        changed = set_key(text, path, value)
    if not values_equal(changed, expected):
        raise FormError(f"{path} cannot be changed here, since other values depend on it.")
    if value is not None and _comments(_without_entries(text, keys, value)) - _comments(changed):
        raise FormError(f"{path} has a comment that would be lost.")
    return changed


def _without_entries(text: str, keys: Sequence[str], value: Any) -> str:
    """Return the text without the entries that a new mapping lacks; their comments go as well."""
    known = field_of(text, ".".join(keys))
    if isinstance(known, dict) and isinstance(value, dict):
        for key in known.keys() - value.keys():
            text = _changed(text, [*keys, key], None)
    return text


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


def field_of(text: str, path: str) -> Any:
    """Return what `text` gives at `path`, untyped scalars as text; None if it gives nothing."""
    node: Any = yaml.compose(text, Loader=YAML_LOADER)
    for key in path.split("."):
        pair = found_in(node, key) if isinstance(node, yaml.MappingNode) else None
        if pair is None:
            return None
        node = pair[1]
    return _content(node)


def values_equal(text: str, expected: Any) -> bool:
    """Whether `text` can be read and means `expected`."""
    try:
        return bool((_meaning(text) or {}) == expected)
    except (yaml.YAMLError, ValueError):
        return False


def _meaning(text: str) -> Any:
    # A subclass of the safe loader, as its name says in `text_edits`.
    return yaml.load(text, Loader=YAML_LOADER)  # noqa: S506


def _expected(text: str, keys: Sequence[str], value: Any) -> Any:
    """Return what the changed text must mean."""
    root = _meaning(text)
    return _with(root if isinstance(root, dict) else {}, keys, value)


def _with(content: dict[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    key, below = keys[0], content.get(keys[0])
    if value is None and (key not in content or (len(keys) > 1 and not isinstance(below, dict))):
        return content
    if len(keys) > 1:
        value = _with(below if isinstance(below, dict) else {}, keys[1:], value)
        value = value if value or not below else None
    rest = {name: each for name, each in content.items() if name != key}
    return rest if value is None else {**rest, key: value}


def _content(node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _content(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_content(each) for each in node.value]
    is_null = not node.style and plain_value(node.value) is None
    return None if is_null else node.value


def _changed(text: str, keys: Sequence[str], value: Any) -> str:
    root = yaml.compose(text, Loader=YAML_LOADER)
    if not isinstance(root, yaml.MappingNode):
        return text if value is None else text + _end_of_line(text) + _entry(keys, value, 0) + "\n"
    mapping, depth = root, 0
    while (
        depth < len(keys) - 1
        and (pair := found_in(mapping, keys[depth]))
        and isinstance(pair[1], yaml.MappingNode)
        and pair[1].value
    ):
        mapping, depth = pair[1], depth + 1
    pair = found_in(mapping, keys[depth])
    if value is None:
        return _without(text, root, keys) if pair and depth == len(keys) - 1 else text
    if pair is None:
        return _with_entry(text, mapping, keys[depth:], value)
    if isinstance(value, dict) and isinstance(pair[1], yaml.MappingNode) and pair[1].value:
        return _with_mapping(text, keys, [key.value for key, _ in pair[1].value], value)
    return _with_value(text, mapping, pair, keys[depth + 1 :], value)


def _with_mapping(
    text: str, keys: Sequence[str], known: Sequence[str], value: dict[str, Any]
) -> str:
    """Return the text with the entries of a mapping set one by one, so that comments stay."""
    for key, each in value.items():
        text = _changed(text, [*keys, key], each)
    for key in known:
        text = text if key in value else _changed(text, [*keys, key], None)
    return text


def _with_value(
    text: str, mapping: yaml.MappingNode, pair: Any, below: Sequence[str], value: Any
) -> str:
    name, node = pair
    start, end = span_of(node, text, name.end_mark.index)
    if mapping.flow_style:
        return f"{text[:start]}{_json(below, value)}{text[end:]}"
    written = _written(below, value, name.start_mark.column)
    if (
        start < end
        and not written.startswith("\n")
        and text.count("\n", name.end_mark.index, start) == 0
    ):
        return f"{text[:start]}{written.lstrip()}{text[end:]}"
    after = text.index(":", name.end_mark.index) + 1
    return f"{text[:after]}{written}{text[max(after, end) :]}"


def _with_entry(text: str, mapping: yaml.MappingNode, keys: Sequence[str], value: Any) -> str:
    """Return the text with a new last entry of the mapping."""
    if mapping.flow_style:
        start = text.index("{", mapping.start_mark.index) + 1
        rest = ", " if mapping.value else ""
        return f"{text[:start]}{keys[0]}: {_json(keys[1:], value)}{rest}{text[start:]}"
    name, last = mapping.value[-1]
    _, end = span_of(last, text, name.end_mark.index)
    end = text.find("\n", max(end, name.end_mark.index))
    before, after = (text, "") if end < 0 else (text[: end + 1], text[end + 1 :])
    column = mapping.value[0][0].start_mark.column
    return f"{before}{_end_of_line(before)}{_entry(keys, value, column)}\n{after}"


def _without(text: str, root: yaml.MappingNode, keys: Sequence[str]) -> str:
    """Return the text without the entry, nor the mappings that it would leave empty."""
    pairs: list[tuple[yaml.MappingNode, Any]] = []
    mapping: Any = root
    for key in keys:
        pair = found_in(mapping, key)
        if pair is None:
            return text
        pairs.append((mapping, pair))
        mapping = pair[1]
    while len(pairs) > 1 and len(pairs[-1][0].value) == 1:
        pairs.pop()
    mapping, (name, node) = pairs[-1]
    _, end = span_of(node, text, name.end_mark.index)
    end = max(end, name.end_mark.index + 1)
    if mapping.flow_style:
        following = text[end:].lstrip()
        if following.startswith(","):
            return text[: name.start_mark.index] + following[1:].lstrip()
        return text[: name.start_mark.index].rstrip().rstrip(",") + text[end:]
    start = text.rfind("\n", 0, name.start_mark.index) + 1
    line_end = text.find("\n", end)
    return text[:start] + ("" if line_end < 0 else text[line_end + 1 :])


def _entry(keys: Sequence[str], value: Any, column: int) -> str:
    return f"{' ' * column}{keys[0]}:{_written(keys[1:], value, column)}"


def _written(keys: Sequence[str], value: Any, column: int) -> str:
    """Return what follows the colon of a key in this column."""
    if keys:
        return "\n" + _entry(keys, value, column + _STEP)
    if isinstance(value, dict) and value:
        return "".join("\n" + _entry([key], each, column + _STEP) for key, each in value.items())
    if isinstance(value, str) and "\n" in value and _fits_block(value):
        end = "" if value.endswith("\n") else "-"
        deep = " " * (column + _STEP)
        lines = value.removesuffix("\n").split("\n")
        return f" |{end}\n" + "\n".join(f"{deep}{line}" if line else "" for line in lines)
    return " " + scalar(value)


def scalar(value: Any) -> str:
    """Return a value in one line, without quotes where YAML reads it as it is."""
    if isinstance(value, str) and "\n" not in value:
        try:
            plain = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError):
            plain = None
        is_plain = plain == value and type(plain_value(value)) is str
        if is_plain and not value.startswith(("*", "&")) and " #" not in value:
            return value
    return json.dumps(value, ensure_ascii=False)


def _fits_block(value: str) -> bool:
    """Whether a literal block gives the text back unchanged."""
    is_plain = value.isprintable() or all(c.isprintable() or c in "\n\t" for c in value)
    return is_plain and value[0] not in " \n\t" and not value.endswith("\n\n")


def _json(keys: Sequence[str], value: Any) -> str:
    for key in reversed(keys):
        value = {key: value}
    return json.dumps(value, ensure_ascii=False)


def _end_of_line(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"
