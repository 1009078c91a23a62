"""No docstring, phrase or name breaks the rules of plain English (see `plain_english.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import plain_english
from tests.architecture.source import at


def test_no_file_has_a_forbidden_opening_phrase_or_name() -> None:
    offenders = [
        at(path, line, wrong)
        for path in plain_english.texts()
        for line, wrong in plain_english.offenders(path)
    ]
    assert not offenders, "\n".join(offenders)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('def f() -> int:\n    """Return the port."""', 0),
        ('def f() -> int:\n    """What it listens on."""', 1),
        ('def f() -> int:\n    """Whether it listens."""', 1),
        ('def f() -> bool:\n    """Whether it listens."""', 0),
        ('@property\ndef f() -> int:\n    """The port."""', 0),
        ('class A:\n    """A port."""', 0),
        ('class A:\n    """Keeps a port."""', 1),
        ('"""Of those who wait."""', 2),
        ('raise ValueError(f"{name} asks for 8 ports")', 1),
        ("told_at = 1", 1),
        ("class SearchWish: pass", 1),
        ("nobody = 65534", 0),
        ('code = "told"', 0),
    ],
)
def test_counts(source: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    assert len(list(plain_english.offenders(path))) == count


def test_code_in_a_document_is_no_prose(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("`told` [a page](told.md)\n```\ntold\n```\nwas told\n", encoding="utf-8")
    assert list(plain_english.phrases(path)) == [(5, "write another word: told")]


def test_a_lookup_in_a_template_is_no_prose(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("{% if proc.told %}it was told{% endif %}", encoding="utf-8")
    assert len(list(plain_english.phrases(path))) == 1
