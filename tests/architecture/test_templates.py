"""Templates hold no script, no style and no handler of their own: the CSP forbids all three."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import name_of, repository_files

INLINE_SCRIPT = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")[^>]*>", re.IGNORECASE
)
INLINE_STYLE = re.compile(r"(?i)<style\b|\sstyle=")
INLINE_HANDLER = re.compile(
    r"\son(?:click|load|submit|change|input|error|key\w+)=|hx-on", re.IGNORECASE
)
ELSEWHERE = re.compile(r"(?i)(?:src|href)=\"(?:https?:)?//(?!\{)")
TEMPLATES = [path for path in repository_files() if path.suffix == ".html"]


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_holds_no_script_or_style_of_its_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert INLINE_SCRIPT.findall(text) == []
    assert INLINE_STYLE.findall(text) == []
    assert INLINE_HANDLER.findall(text) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_loads_nothing_from_elsewhere(path: Path) -> None:
    loaded = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if ELSEWHERE.search(line) and re.search(r"<(?:script|link|img|iframe)\b", line)
    ]
    assert loaded == []


def test_nothing_marks_text_as_safe_in_a_template() -> None:
    unsafe = [
        name_of(path)
        for path in TEMPLATES
        if re.search(r"\|\s*safe\b|autoescape off", path.read_text())
    ]
    assert unsafe == []
