"""Groups that fold, the way to the first error, and progress bars that draw over themselves."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.statuses import JobStatus
from tests.browser.test_live import Runner
from tests.factories import make_job
from tests.frame_bytes import body, frame


@pytest.fixture
def job(project, ada):
    return make_job(project, status=JobStatus.RUNNING, submitted_by=ada)


@pytest.fixture
def say(job):
    """Write lines of the job's only rank; those with \r at an end are pieces of a longer one."""
    runner = Runner(job)

    def write(*texts: str, more: bool = False) -> None:
        frames = []
        for text in texts:
            runner.sent += 1
            frames.append(frame(runner.sent, text=text, more=more))
        ingest_frames(runner.attempt.pk, runner.token, body(*frames))

    return write


def opened(page, job, end: str = ""):
    page.goto(f"/rl/jobs/{job.pk}{end}")
    page.locator("#log-state[data-state=live]").wait_for()


def group(title: str, *lines: str) -> list[str]:
    return [f"::group::{title}", *lines, "::endgroup::"]


@pytest.mark.feature("P3.2")
def test_a_group_that_is_over_is_folded_and_one_with_an_error_is_open(page, job, say):
    say("begin", *group("<b>Install</b>", "pip 1", "pip 2"), *group("Build", "cc: fatal: no"))
    opened(page, job)
    install = page.get_by_role("button", name="<b>Install</b>")
    build = page.get_by_role("button", name="Build")
    expect(install).to_have_attribute("aria-expanded", "false")
    expect(build).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_text("pip 1")).to_be_hidden()
    expect(page.get_by_text("cc: fatal")).to_be_visible()
    expect(page.get_by_text("::endgroup::")).to_have_count(2)
    expect(page.get_by_text("::endgroup::").first).to_be_hidden()
    install.click()
    expect(page.get_by_text("pip 2")).to_be_visible()
    install.click()
    expect(page.get_by_text("pip 2")).to_be_hidden()


def test_a_group_that_goes_on_is_open_until_it_is_over(page, job, say):
    say("::group::Train", "step 1")
    opened(page, job)
    expect(page.get_by_text("step 1")).to_be_visible()
    say("step 2")
    expect(page.get_by_text("step 2")).to_be_visible()
    say("::endgroup::", "after")
    expect(page.get_by_text("after")).to_be_visible()
    expect(page.get_by_text("step 2")).to_be_hidden()


def test_an_address_and_a_match_open_the_group_they_are_in(page, job, say):
    say(*group("One", "needle 1"), *group("Two", "needle 2"))
    opened(page, job, "#A1-L2")
    expect(page.get_by_text("needle 1")).to_be_visible()
    expect(page.get_by_text("needle 2")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.insert_text("needle 2")
    expect(page.locator("li.current .t")).to_have_text("needle 2")
    expect(page.get_by_text("needle 2")).to_be_visible()


@pytest.mark.feature("P3.2")
def test_the_first_error_of_a_long_log_is_one_key_away_and_in_the_address(page, job, say):
    say("0 errors so far", "fine", "ValueError: nan", *[f"line {i}" for i in range(3000)])
    opened(page, job)
    page.locator("#log").focus()
    page.keyboard.press("e")
    expect(page.locator("li.target .t")).to_have_text("ValueError: nan")
    expect(page.locator("li.target")).to_be_in_viewport()
    expect(page).to_have_url(re.compile("#A1-L3$"))


def test_a_log_without_an_error_says_so(page, job, say):
    say("fine")
    opened(page, job)
    page.get_by_role("button", name="First error").click()
    expect(page.get_by_role("button", name="No error found")).to_be_visible()


@pytest.mark.feature("P3.2")
def test_a_progress_bar_is_one_line_that_shows_its_newest_state(page, job, say):
    say("\r  0%", "\r 50%\r", more=True)
    opened(page, job)
    expect(page.get_by_text("50%")).to_be_visible()
    say("\r100%", "done\x1b[K")
    say("epoch 1 of 20\repoch 2")
    expect(page.get_by_text("epoch 2")).to_be_visible()
    shown = page.locator("#log-lines li:visible .t").all_inner_texts()
    assert shown == ["100%", "done", "epoch 2 of 20"]
