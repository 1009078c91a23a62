"""The order of several documents in one file, as `sky jobs launch` reads it: one after another.

The first may be a header, which holds `name` alone, or `name` and `execution: serial`. A file in
which a document says `portal.depends_on` has an order of its own, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec.findings import Findings
from monarch_client.spec.from_yaml import read_yaml
from monarch_client.spec.nodes import Node
from monarch_client.spec.text_edits import set_key

_HEADERS = ({"name"}, {"name", "execution"})
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 90
# More are refused when they are submitted: they are not worth changing.
_MOST = 100


def in_order(texts: Sequence[str]) -> list[str]:
    """Return the specifications in `texts`, each with a dependency on the one before.

    What a header says is left out. Unnamed documents, and those whose name another has, get a name
    of their own, so that the next one can refer to them. Texts that cannot be read stay as they
    are: their parser says why.
    """
    if len(texts) > _MOST + 1:
        return list(texts)
    found = [_mapping_of(text) for text in texts]
    if any(each is None for each in found):
        return list(texts)
    values = [each for each in found if each is not None]
    pipeline = "job"
    if _is_header(values[0]):
        pipeline = _NOT_IN_NAMES.sub("-", values[0]["name"]).strip("-._") or pipeline
        texts, values = texts[1:], values[1:]
    if len(texts) > 1 and any("depends_on" in _portal(each) for each in values):
        return list(texts)
    names = list(_names(values, pipeline))
    changed = list(texts)
    for place, (value, name) in enumerate(zip(values, names, strict=True)):
        if value.get("name") != name:
            changed[place] = set_key(changed[place], "name", name)
        if place and isinstance(value.get("portal") or {}, dict):
            changed[place] = set_key(changed[place], "portal.depends_on", [names[place - 1]])
    return changed


def _mapping_of(text: str) -> dict[str, Any] | None:
    """Return the keys of a document, nested ones of `portal` included; None if it has none."""
    try:
        root = read_yaml(text, Findings())
    except InvalidSpecErrors:
        return None
    if not isinstance(root.value, dict):
        return None
    return {key: _plain(entry.node) for key, entry in root.value.items()}


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: entry.node.value for key, entry in node.value.items()}
    return node.value


def _is_header(value: dict[str, Any]) -> bool:
    is_serial = str(value.get("execution", "serial")) == "serial"
    return set(value) in _HEADERS and is_serial and isinstance(value["name"], str)


def _portal(value: dict[str, Any]) -> dict[str, Any]:
    portal = value.get("portal")
    return portal if isinstance(portal, dict) else {}


def _names(values: Sequence[dict[str, Any]], unnamed: str) -> Iterator[str]:
    """Yield a name for each document that no other one of the file has."""
    given = [value.get("name") for value in values]
    for number, name in enumerate(given, start=1):
        if name is not None and given.count(name) == 1:
            yield name
            continue
        if len(values) == 1:
            yield unnamed
            continue
        stem = f"{(name or unnamed)!s}"[:_LONGEST_NAME]
        yield next(
            each
            for each in (f"{stem}-{number}{'x' * more}" for more in range(len(given) + 1))
            if each not in given
        )
