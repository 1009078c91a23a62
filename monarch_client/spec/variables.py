"""The variables that `envs` fills in where SkyPilot fills them in: sources and paths of files.

Values of secrets are not filled in: they would be stored and shown with the specification.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.nodes import Entry, Node

_KEYS = ("workdir", "file_mounts", "volumes")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)
# More than any path has: a value may be long, and be named often.
_MOST = 8192


def with_variables(root: Node, findings: Findings) -> Node:
    """Return the specification `root` with `$NAME` and `${NAME}` of `envs` filled in.

    What `envs` does not set stays as it is, and is refused where a `$` is.
    """
    values = _values(root)
    if not values:
        return root
    content = {
        key: replace(entry, node=_filled(entry.node, key, values, findings))
        if key in _KEYS
        else entry
        for key, entry in root.value.items()
    }
    return replace(root, value=content)


def names_variable(text: str) -> bool:
    """Whether a text names a variable."""
    return bool(_VARIABLE.search(text))


def _values(root: Node) -> dict[str, str]:
    envs = root.value.get("envs") if isinstance(root.value, dict) else None
    entries = envs.node.value if envs is not None else None
    if not isinstance(entries, dict):
        return {}
    return {
        name: entry.node.text
        for name, entry in entries.items()
        if not isinstance(entry.node.value, dict | tuple | None)
    }


def _filled(node: Node, path: str, values: dict[str, str], findings: Findings) -> Node:
    if isinstance(node.value, tuple):
        items = tuple(
            _filled(each, f"{path}[{place}]", values, findings)
            for place, each in enumerate(node.value)
        )
        return replace(node, value=items)
    if isinstance(node.value, dict):
        return replace(node, value=_mapping(node.value, path, values, findings))
    if not isinstance(node.value, str):
        return node
    text = _text(node.value, path, values, findings, node.line)
    return node if text == node.value else replace(node, value=text, text=text)


def _mapping(
    entries: dict[str, Entry], path: str, values: dict[str, str], findings: Findings
) -> dict[str, Any]:
    filled: dict[str, Entry] = {}
    for key, entry in entries.items():
        name = _text(key, join(path, key), values, findings, entry.line)
        if name in filled:
            message = f"{join(path, key)} is {join(path, name)} once more."
            findings.add(path, SpecCode.DUPLICATE_KEY, message, line=entry.line)
        node = _filled(entry.node, join(path, name), values, findings)
        filled[name] = replace(entry, node=node)
    return filled


def _text(
    text: str, path: str, values: dict[str, str], findings: Findings, line: int | None
) -> str:
    def value(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2], match[0])

    if sum(len(value(match)) for match in _VARIABLE.finditer(text)) > _MOST:
        message = f"{path} has more than {_MOST:,} characters with its variables."
        findings.add(path, SpecCode.TOO_LARGE, message, line=line)
        return text
    return _VARIABLE.sub(value, text)
