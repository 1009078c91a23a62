"""Times of pages are formatted in one place of the server and one of the browser."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT, repository_files

# The filters of Django, and ISO times written out. Months of a budget are no moments.
IN_TEMPLATES = re.compile(r"\|\s*(?:date|time|timesince|timeuntil|localtime|utc)\b(?!:'U\.u')")
MONTHS = re.compile(r"\{\{ (?:first|before|after)\|date:['\"](?:F Y|Y-m)['\"] \}\}")
IN_PYTHON = re.compile(r"strftime\(|[{:]%[aAbBdHIYmp]|:%-?[aAbBdHIYmp]|localtime\(|date_format\(")
IN_SCRIPTS = re.compile(
    r"Intl\.DateTimeFormat|toLocale(?:Date|Time)String|to(?:Date|Time|UTC)String|\.get(?:UTC)?Hours"
)
PLACES = ("jobs/web/base/clocks.py", "jobs/static/jobs/js/clock.js")


def test_a_page_formats_times_with_the_tags_of_one_module() -> None:
    offenders = []
    for path in repository_files():
        name = path.relative_to(ROOT).as_posix()
        pattern = _pattern(name)
        if pattern is None or name in PLACES:
            continue
        text = MONTHS.sub("", path.read_text(encoding="utf-8"))
        offenders += [f"{name}: {found[0]}" for found in pattern.finditer(text)]
    assert not offenders, "use the tags of time_tags.py or js/clock.js:\n" + "\n".join(offenders)


def _pattern(name: str) -> re.Pattern[str] | None:
    if name.startswith("templates/"):
        return IN_TEMPLATES
    if name.startswith("jobs/web/"):
        return IN_PYTHON
    return IN_SCRIPTS if name.startswith("jobs/static/jobs/js/") else None
