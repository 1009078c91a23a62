"""The key `portal.labels`, and the rules for labels everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable

from monarch_client.spec.envs import EnvValue
from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.shapes import KeyName, Mapping
from monarch_client.spec.tables import Key

MOST_LABELS = 20
LABEL_NAME = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}"
LABEL_VALUE = r"[A-Za-z0-9._/:@+ -]{0,63}"
NAME_WORDS = "a label's name: up to 63 letters, digits, '.', '_', '/' and '-', such as team"
VALUE_WORDS = "up to 63 letters, digits, spaces and any of . _ / : @ + -"

LABELS_KEY = Key(
    "labels",
    "Labels of the job, to find it in the table and in `mportal ps --label`. Users can change them "
    "later.",
    Mapping(
        "a mapping of names to values", KeyName(NAME_WORDS, LABEL_NAME), EnvValue(), MOST_LABELS
    ),
    {"team": "vision", "sweep": 7},
    default={},
)


def label_complaint(name: str, value: str) -> str | None:
    """Return what is wrong with a label, or None."""
    if not re.fullmatch(LABEL_NAME, name):
        return f"{name[:80]!r} is not {NAME_WORDS}."
    if not re.fullmatch(LABEL_VALUE, value):
        return f"The value of label {name} may have {VALUE_WORDS}."
    return None


def labels_are_sound(values: dict[str, object], path: str, findings: Findings) -> None:
    """Report values of labels that are too long or have other characters."""
    labels = values.get("labels")
    for name, value in labels.items() if isinstance(labels, dict) else ():
        if isinstance(value, str) and not re.fullmatch(LABEL_VALUE, value):
            where = join(join(path, "labels"), name)
            message = f"{where} may have {VALUE_WORDS}."
            findings.add(where, SpecCode.BAD_VALUE, message)


def changes_in(words: Iterable[str]) -> dict[str, str | None]:
    """Return the changes that words such as `team=rl` and `old-` name: a value, or None to remove.

    ValueError for a word that is neither, and for a label that breaks the rules.
    """
    changes: dict[str, str | None] = {}
    for word in words:
        name, has_value, value = word.partition("=")
        if not has_value and not word.endswith("-"):
            raise ValueError(f"{word[:80]!r} is no label: write name=value, or name- to remove it.")
        name = name if has_value else word[:-1]
        if complaint := label_complaint(name.strip(), value.strip()):
            raise ValueError(complaint)
        changes[name.strip()] = value.strip() if has_value else None
    return changes
