"""The fields of the form that have rows: entries of mappings and items of lists.

Each change is of one entry, so that the others stay as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec.findings import Findings
from monarch_client.spec.form_edits import is_null, node_at, rename_entry, set_entry, untyped
from monarch_client.spec.from_yaml import read_yaml
from monarch_client.spec.nodes import content_of, plain_value
from monarch_client.spec.places import FormError, Keys, Source
from monarch_client.spec.yaml_text import in_one_line

_SECRETS = "secrets"
_DATA = ("[", "{", '"', "'")

Row = tuple[str, str | None]


def rows_of(text: str, path: str) -> list[Row]:
    """Return the entries of a mapping, or the items of a list, as names and texts.

    An entry without a value has None; the secrets of a list are names without a value.
    """
    node = node_at(text, path.split("."))
    if isinstance(node, yaml.MappingNode):
        return [(key.value, _shown(text, value)) for key, value in node.value]
    if not isinstance(node, yaml.SequenceNode):
        return []
    items = [_shown(text, each) or "" for each in node.value]
    return [(item, None) if path == _SECRETS else ("", item) for item in items]


def with_row(text: str, path: str, change: Mapping[str, str]) -> str:
    """Return the text with one row changed, and all others as they are.

    `row`: the name of the entry, or the number of the item; none for a new one. `name`, `value`:
    what is new of it; without both it is removed. FormError, ValueError, yaml.YAMLError: as
    `form_edits.set_entry`.
    """
    row, name = change.get("row"), change.get("name", "").strip()
    names = [each for each, _ in rows_of(text, path)]
    if path not in NAMED:
        return _with_item(text, path, len(names) if row is None else _number(row, names), change)
    if row is None and not name:
        raise FormError("give it a name.")
    if name in names and name != row:
        raise FormError(f"{name} is there already.")
    if path == _SECRETS and not isinstance(node_at(text, [path]), yaml.MappingNode):
        if not change.get("value"):
            return _with_listed_secret(text, names, row, name)
        text = set_entry(text, [path], dict.fromkeys(names)) if names else text
    return _with_entry(text, path, row, change)


def _number(row: str, items: list[str]) -> int:
    numbers = [str(number) for number in range(len(items))]
    if row not in numbers:
        raise FormError("there is no such row any more.")
    return numbers.index(row)


def _with_item(text: str, path: str, number: int, change: Mapping[str, str]) -> str:
    value = _data(change["value"]) if change.get("value", "").strip() else None
    return set_entry(text, [*path.split("."), number], value)


def _with_listed_secret(text: str, names: list[str], row: str | None, name: str) -> str:
    """Return the text with a secret of a list added, replaced, or without a name removed."""
    number = names.index(row) if row in names else len(names)
    return set_entry(text, [_SECRETS, number], name or None)


def _with_entry(text: str, path: str, row: str | None, change: Mapping[str, str]) -> str:
    name = change.get("name", "").strip()
    keys: Keys = [*path.split("."), name if row is None else row]
    if "name" not in change and "value" not in change:
        return set_entry(text, keys, None)
    if "value" in change:
        text = set_entry(text, keys, _READERS[path](change["value"]))
    return rename_entry(text, keys, name) if name and row is not None else text


def _shown(text: str, node: Any) -> str | None:
    """Return a value as the text of a field: data as it was written, if that is in one line."""
    if isinstance(node, yaml.ScalarNode):
        return None if is_null(node) else node.value
    written = text[node.start_mark.index : node.end_mark.index]
    is_short = node.flow_style and "\n" not in written and "*" not in written
    return written if is_short else in_one_line(untyped(node))


def _text(text: str) -> str | Source:
    """Return the text of a variable; a plain number needs no quotes."""
    return Source(text) if _is_number(text) else text


def _name(text: str) -> str | Source:
    return text.strip() or Source("null")


def _data(text: str) -> str | Source:
    """Return YAML as it is written where it is a list, a mapping or in quotes, else text."""
    text = text.strip()
    if not text.startswith(_DATA):
        return _text(text)
    try:
        node = read_yaml(text, Findings())
    except InvalidSpecErrors as error:
        raise FormError("this value is not valid YAML.") from error
    if node.size > len(text):
        raise FormError("aliases in a value are not read.")
    return Source(text if "\n" not in text else in_one_line(content_of(node)))


def _is_number(text: str) -> bool:
    value = plain_value(text)
    return type(value) in {int, float} and in_one_line(value) == text


_READERS: dict[str, Callable[[str], Any]] = {
    "envs": _text,
    "secrets": _name,
    "portal.meshes": _data,
    "portal.array": _data,
    "portal.depends_on": _data,
}
# The fields whose rows have a name.
NAMED = frozenset(_READERS) - {"portal.depends_on"}
ROWS = frozenset(_READERS)
