"""The shipped documentation as pages: links lead to other pages, markup of texts is escaped."""

from __future__ import annotations

import re

from jobs.web.base.documents import render, rendered, shipped
from jobs.web.base.terms import meanings

LINK = re.compile(r'href="/settings/help/([^"#]+)(?:#([^"]+))?"')


def test_a_relative_link_leads_to_the_shipped_page_and_no_other_link_is_dead() -> None:
    html = render(
        "[spec](../reference/spec.md#keys) [code](../../jobs/tasks.py) [out](https://skypilot.co)"
        " <script>alert(1)</script> ![x](../images/job-page.png)",
        "docs/howto/plain-job.md",
    )
    assert 'href="/settings/help/docs/reference/spec.md#keys"' in html
    assert 'src="/settings/help/docs/images/job-page.png"' in html
    assert 'href="https://skypilot.co"' in html
    assert "<a>code</a>" in html
    assert "<script>" not in html


def test_every_link_between_shipped_pages_finds_its_page_and_heading() -> None:
    pages = [name for name in shipped() if name.startswith("docs/") and name.endswith(".md")]
    wrong = [
        f"{name}: {target}#{fragment}"
        for name in pages
        for target, fragment in LINK.findall(rendered(name))
        if target not in shipped() or (fragment and f'id="{fragment}"' not in rendered(target))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_term_is_defined_by_its_row_of_the_glossary_as_plain_text() -> None:
    assert meanings()["attempt"].startswith("One run of a job, numbered from 1.")
    assert meanings()["terminate"] == meanings()["stop"]
    assert "`" not in meanings()["stage"]
