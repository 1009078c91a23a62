"""Text that leaves the page: copies, the log as a file; and the keys of the log's bar."""

from __future__ import annotations

import gzip
import re

import pytest
from playwright.sync_api import expect

from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.browser.test_live import Runner, scroll
from tests.factories import make_job

TEXT = "[0] \x1b[31mred\x1b[0m 1 of rank 0\n[1] \x1b[31mred\x1b[0m 1 of rank 1\n"


@pytest.fixture
def job(project, ada):
    return make_job(project, status=JobStatus.RUNNING, submitted_by=ada, num_nodes=2)


def opened(page, job, end: str = ""):
    page.goto(f"/rl/jobs/{job.pk}{end}")
    page.locator("#log-state[data-state=live]").wait_for()


def copied(page) -> str:
    """Copy by key and return what the clipboard holds."""
    page.keyboard.press("Control+c")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def downloaded(page, link: str):
    with page.expect_download() as event:
        page.get_by_role("link", name=link, exact=True).click()
    return event.value


@pytest.mark.feature("P3.2")
def test_what_is_copied_is_what_was_printed_without_numbers_ranks_and_colors(page, job):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    Runner(job, ranks=2).write(2, "\x1b[31mloss\x1b[0m <b>")
    opened(page, job)
    page.evaluate("getSelection().selectAllChildren(document.getElementById('log-lines'))")
    assert copied(page).split("\n") == [
        f"loss <b> {seq} of rank {rank}" for seq in (1, 2) for rank in (0, 1)
    ]


@pytest.mark.feature("P3.2")
def test_a_log_is_downloaded_as_text_and_compressed_with_its_colors(page, job):
    Runner(job, ranks=2).write(1, "\x1b[31mred\x1b[0m")
    opened(page, job)
    plain, packed = downloaded(page, "Download"), downloaded(page, "Download compressed")
    assert plain.suggested_filename == f"job-{job.pk}.log"
    assert plain.path().read_text() == TEXT
    assert packed.suggested_filename == f"job-{job.pk}.log.gz"
    assert gzip.decompress(packed.path().read_bytes()).decode() == TEXT


@pytest.mark.feature("P3.2")
def test_a_page_of_an_earlier_attempt_downloads_the_log_of_that_one(page, job):
    Runner(job).write(1, "first")
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    Runner(job).write(1, "second")
    page.goto(f"/rl/jobs/{job.pk}?attempt=1")
    page.get_by_text("first 1 of").wait_for()
    assert downloaded(page, "Download").path().read_text() == "[0] first 1 of rank 0\n"


@pytest.mark.feature("P3.2")
def test_keys_show_times_wrap_lines_and_go_to_the_newest(page, job):
    runner = Runner(job)
    runner.write(400)
    opened(page, job)
    log = page.locator("#log")
    log.focus()
    expect(page.locator("#log-lines .at").first).to_be_hidden()
    page.keyboard.press("t")
    expect(page.locator("#log-lines .at").first).to_be_visible()
    expect(page.get_by_role("button", name="Timestamps")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("w")
    expect(log).not_to_have_class(re.compile(r"\bwrap\b"))
    page.keyboard.press("w")
    expect(log).to_have_class(re.compile(r"\bwrap\b"))
    scroll(page, 0)
    page.get_by_role("button", name="Jump to newest").wait_for()
    page.keyboard.press("G")
    expect(page.get_by_text("step 400 of")).to_be_in_viewport()
    page.keyboard.press("f")
    expect(page.get_by_role("searchbox", name="Find in the log")).to_be_focused()
