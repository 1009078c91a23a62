"""Templates hold no script, no style and no handler of their own: the CSP forbids all three."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.source import at, matches_in, repository_files, text_of

INLINE_SCRIPT = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")[^>]*>", re.IGNORECASE
)
INLINE_STYLE = re.compile(r"(?i)<style\b|\sstyle=")
INLINE_HANDLER = re.compile(
    r"\son(?:click|load|submit|change|input|error|key\w+)=|hx-on", re.IGNORECASE
)
ELSEWHERE = re.compile(r"(?i)(?:src|href)=\"(?:https?:)?//(?!\{)")
MARKED_SAFE = re.compile(r"\|\s*safe\b|autoescape off")


def templates() -> list[Path]:
    """List the repository's HTML files."""
    return [path for path in repository_files() if path.suffix == ".html"]


def test_a_template_holds_no_script_or_style_of_its_own() -> None:
    offenders = [
        at(path, line, f"holds {match[0]}, which belongs in a file of its own")
        for path in templates()
        for pattern in (INLINE_SCRIPT, INLINE_STYLE, INLINE_HANDLER)
        for line, match in matches_in(path, pattern)
    ]
    assert not offenders, "\n".join(offenders)


def test_a_template_loads_nothing_from_elsewhere() -> None:
    offenders = [
        at(path, number, f"loads from another host: {line}")
        for path in templates()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if ELSEWHERE.search(line) and re.search(r"<(?:script|link|img|iframe)\b", line)
    ]
    assert not offenders, "\n".join(offenders)


def test_nothing_marks_text_as_safe_in_a_template() -> None:
    offenders = [
        at(path, line, f"turns escaping off: {match[0]}")
        for path in templates()
        for line, match in matches_in(path, MARKED_SAFE)
    ]
    assert not offenders, "\n".join(offenders)
