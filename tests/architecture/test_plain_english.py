"""The numbers of forbidden openings and phrases only shrink (see `plain_english.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import plain_english
from tests.architecture.plain_english import NONE, Count

COMMAND = "python -m tests.architecture.plain_english"


def test_no_folder_has_more_forbidden_openings_or_phrases_than_the_list_allows() -> None:
    allowed = plain_english.allowed()
    offenders = [
        f"{name} has {found}, allowed {limit}: see `{COMMAND} {name}`; after moves run it alone"
        for name, found in plain_english.counted().items()
        if found.openings > (limit := allowed.get(name, NONE)).openings
        or found.phrases > limit.phrases
    ]
    assert not offenders, "\n".join(offenders)


def test_the_list_allows_no_more_than_there_is() -> None:
    counted = plain_english.counted()
    offenders = [
        f"{name} has {found}, allowed are {limit}: run `{COMMAND}`"
        for name, limit in plain_english.allowed().items()
        if limit.openings > (found := counted.get(name, NONE)).openings
        or limit.phrases > found.phrases
    ]
    assert not offenders, "\n".join(offenders)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('def f() -> int:\n    """Return the port."""', Count(0, 0)),
        ('def f() -> int:\n    """What it listens on."""', Count(1, 0)),
        ('def f() -> int:\n    """Whether it listens."""', Count(1, 0)),
        ('def f() -> bool:\n    """Whether it listens."""', Count(0, 0)),
        ('@property\ndef f() -> int:\n    """The port."""', Count(0, 0)),
        ('class A:\n    """A port."""', Count(0, 0)),
        ('class A:\n    """Keeps a port."""', Count(1, 0)),
        ('"""Of those who wait."""', Count(1, 1)),
        ('raise ValueError(f"{name} asks for 8 ports")', Count(0, 1)),
    ],
)
def test_counts(source: str, count: Count, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    assert plain_english.count(path) == count


def test_code_in_a_document_is_no_prose(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("`told` [a page](told.md)\n```\ntold\n```\nwas told\n", encoding="utf-8")
    assert list(plain_english.phrases(path)) == [(5, "write another word: told")]
