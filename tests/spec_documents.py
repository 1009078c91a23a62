"""The reference of the job specification, written from the parser's own tables.

`python -m tests.spec_documents` writes docs/reference/spec.md and job-spec.schema.json; a test
says when they are out of date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from monarch_client.spec import SpecCode, json_schema
from monarch_client.spec.shapes import Either, Listing, Mapping, Shape
from monarch_client.spec.tables import Key, Table, Tier
from monarch_client.spec.task_keys import TASK
from tests.spec_prose import CODES, INTRODUCTION, NOT_ACCEPTED, SECTIONS

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
PAGE = REFERENCE / "spec.md"
SCHEMA = REFERENCE / "job-spec.schema.json"
# These hold the same keys as `resources` itself.
_SAME_AGAIN = {"resources.any_of", "resources.ordered"}


def all_keys(table: Table = TASK, prefix: str = "") -> Iterator[tuple[str, Key]]:
    """Yield every key with its path; below a free key the path has <name>."""
    for key in table.keys:
        path = f"{prefix}{key.name}"
        yield path, key
        if path not in _SAME_AGAIN:
            yield from _below(key.shape, path)


def _below(shape: Shape, path: str) -> Iterator[tuple[str, Key]]:
    if isinstance(shape, Table):
        yield from all_keys(shape, f"{path}.")
    elif isinstance(shape, Mapping):
        yield from _below(shape.value, f"{path}.<name>")
    elif isinstance(shape, Listing):
        yield from _below(shape.item, f"{path}[]")
    elif isinstance(shape, Either):
        for option in shape.options:
            yield from _below(option, path)


def page_text() -> str:
    """Generate docs/reference/spec.md."""
    sections = (_section(*section) for section in SECTIONS)
    return "\n".join([INTRODUCTION, *sections, _not_accepted(), _refused(), _codes()])


def schema_text() -> str:
    """Generate docs/reference/job-spec.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _section(title: str, prose: str, prefix: str) -> str:
    rows = [
        _row(path, key)
        for path, key in all_keys()
        if not key.is_refused and _section_of(path) == prefix
    ]
    head = "| key | type | meaning | example | default |\n|---|---|---|---|---|"
    return "\n\n".join(filter(None, [f"## {title}", prose, "\n".join([head, *rows])])) + "\n"


def _section_of(path: str) -> str:
    top = path.replace("[", ".").split(".")[0]
    return top if "." in path and top in {name for _, _, name in SECTIONS} else ""


def _row(path: str, key: Key) -> str:
    about = key.about + (f" **Administrators only**: {key.why}" if key.tier is Tier.ADMIN else "")
    default = "" if key.default is None else f"`{_yaml(key.default)}`"
    if key.required:
        default = "required"
    cells = (f"`{path}`", key.shape.wants, about, f"`{_yaml(key.example)}`", default)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _not_accepted() -> str:
    rows = [f"| {feature} | {reason} |" for feature, reason in NOT_ACCEPTED.items()]
    title = "## What SkyPilot accepts and the portal does not"
    return "\n".join([title, "", "| in a SkyPilot file | here |", "|---|---|", *rows, ""])


def _refused() -> str:
    rows = []
    for path, key in all_keys():
        if key.is_refused:
            code = "not_enforced" if key.tier is Tier.LATER else "set_by_portal"
            rows.append(f"| `{path}` | `{code}` | {key.about} | {key.why} |")
    head = "| key | code | what it is in SkyPilot, or will be here | why |\n|---|---|---|---|"
    return "## Refused keys\n\n" + "\n".join([head, *rows]) + "\n"


def _codes() -> str:
    rows = [f"| `{code.value}` | {CODES[code]} |" for code in SpecCode]
    return "## Codes of errors\n\n" + "\n".join(["| code | means |\n|---|---|", *rows]) + "\n"


def _yaml(value: object) -> str:
    """Return the value on one line, as YAML reads it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_yaml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
