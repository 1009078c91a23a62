"""Finding in a log: over all of it on the server, from match to match in the page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs.statuses import JobStatus
from tests.browser.test_live import Runner, numbers
from tests.factories import make_job


@pytest.fixture
def job(project, ada):
    return make_job(project, status=JobStatus.RUNNING, submitted_by=ada, num_nodes=2)


@pytest.fixture
def runner(job):
    return Runner(job)


def opened(page, job, end: str = ""):
    page.goto(f"/rl/jobs/{job.pk}{end}")
    page.locator("#log-state[data-state=live]").wait_for()


def find(page, words: str):
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("searchbox", name="Find in the log").fill(words)


def count(page):
    return page.locator("[data-find] output")


def current(page):
    return page.locator("li.current .n")


@pytest.mark.feature("P3.2")
def test_matches_far_above_are_counted_and_shown_with_what_is_around_them(page, job, runner):
    runner.write(3, "needle")
    for _ in range(5):
        runner.write(1000)
    runner.write(1, "needle")
    opened(page, job)
    find(page, "NEEDLE")
    expect(count(page)).to_have_text("1 of 4")
    expect(current(page)).to_have_text("1")
    assert page.locator("li.current mark").inner_text() == "needle"
    assert 5 in numbers(page)
    page.get_by_role("button", name="Previous match").click()
    expect(count(page)).to_have_text("4 of 4")
    expect(current(page)).to_have_text("5004")
    expect(current(page)).to_be_in_viewport()
    page.get_by_role("searchbox", name="Find in the log").press("Escape")
    expect(page.locator("mark")).to_have_count(0)


def test_enter_goes_on_and_shift_enter_goes_back(page, job, runner):
    runner.write(3)
    opened(page, job)
    find(page, "step")
    expect(count(page)).to_have_text("1 of 3")
    for key, place in (("Enter", 2), ("Enter", 3), ("Enter", 1), ("Shift+Enter", 3)):
        page.keyboard.press(key)
        expect(count(page)).to_have_text(f"{place} of 3")
        expect(current(page)).to_have_text(str(place))


@pytest.mark.feature("P3.2")
def test_the_search_is_in_the_address_and_is_found_again(page, job, runner):
    runner.write(1, "loss is nan")
    runner.write(1, "Loss is 1")
    opened(page, job)
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("button", name="Regular expression").click()
    page.get_by_role("button", name="Match case").click()
    page.get_by_role("searchbox", name="Find in the log").fill("^l.ss")
    expect(count(page)).to_have_text("1 of 1")
    expect(page).to_have_url(re.compile(r"find=%5El.ss&regex=true&case=true"))
    page.reload()
    expect(count(page)).to_have_text("1 of 1")
    expect(page.locator("mark")).to_have_text("loss")


@pytest.mark.feature("P3.2")
def test_errors_alone_are_found_and_kept_in_the_address(page, job, runner):
    runner.write(1, "loss is 1")
    runner.write(1, "UserWarning: slow step")
    runner.write(1, "ValueError: loss is nan")
    opened(page, job)
    page.get_by_role("button", name="Find", exact=True).click()
    level = page.get_by_role("combobox", name="Level")
    level.select_option("Warnings, errors")
    expect(count(page)).to_have_text("1 of 2")
    level.select_option("Errors")
    expect(count(page)).to_have_text("1 of 1")
    expect(page.locator("mark")).to_have_text("ValueError")
    expect(page).to_have_url(re.compile(r"\?level=error$"))
    page.reload()
    expect(count(page)).to_have_text("1 of 1")
    page.get_by_role("searchbox", name="Find in the log").fill("step")
    expect(count(page)).to_have_text("No match")


def test_a_pattern_that_is_none_is_reported_with_its_place(page, job, runner, faults):
    runner.write(1)
    opened(page, job)
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("button", name="Regular expression").click()
    page.get_by_role("searchbox", name="Find in the log").fill("st(ep")
    expect(count(page)).to_contain_text("missing )")
    expect(count(page)).to_contain_text("at character 3")
    page.get_by_role("searchbox", name="Find in the log").fill("st(ep)")
    expect(count(page)).to_have_text("1 of 1")
    faults.forgive("400 (Bad Request)")


def test_lines_that_are_written_meanwhile_are_counted(page, job, runner):
    runner.write(1, "needle")
    opened(page, job)
    find(page, "needle")
    expect(count(page)).to_have_text("1 of 1")
    runner.write(2, "needle")
    expect(count(page)).to_have_text("1 of 3")
    expect(page.locator("mark")).to_have_count(3)


def test_nothing_found_is_said(page, job, runner):
    runner.write(1)
    opened(page, job)
    find(page, "nothing of this")
    expect(count(page)).to_have_text("No match")


def test_marks_stand_where_the_words_are_shown_and_markup_stays_text(page, job, runner):
    runner.write(1, "\x1b[31m💥 <b>re\x1b[0md</b>")
    runner.write(1, "old\rnew 100% done and more words\r>>")
    opened(page, job)
    find(page, "<b>red")
    expect(count(page)).to_have_text("1 of 1")
    expect(page.locator("li.hit .t")).to_have_text("💥 <b>red</b> 1 of rank 0")
    assert page.locator("mark").all_inner_texts() == ["<b>re", "d"]
    expect(page.locator(".a31 mark")).to_have_text("<b>re")
    page.get_by_role("searchbox", name="Find in the log").fill("and more")
    expect(page.locator("li.hit .t")).to_have_text(">> 2 of rank 0and more words")
    expect(page.locator("mark")).to_have_text("and more")


@pytest.mark.feature("P3.2")
def test_the_rank_that_is_shown_is_the_rank_that_is_searched(page, job):
    Runner(job, ranks=2).write(3)
    opened(page, job)
    find(page, "step")
    expect(count(page)).to_have_text("1 of 6")
    page.get_by_role("button", name="1", exact=True).click()
    expect(count(page)).to_have_text(re.compile("of 3$"))


@pytest.mark.feature("P3.2")
def test_keys_find_step_and_explain_themselves_but_not_while_one_writes(page, job, runner):
    runner.write(3)
    opened(page, job)
    page.keyboard.press("/")
    page.keyboard.insert_text("step n")
    expect(count(page)).to_have_text("No match")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    expect(count(page)).to_have_text("1 of 3")
    page.locator("#log").focus()
    page.keyboard.press("n")
    expect(current(page)).to_have_text("2")
    page.keyboard.press("Shift+N")
    expect(current(page)).to_have_text("1")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts of the log")
    expect(keys).to_be_visible()
    assert keys.locator("kbd").all_inner_texts() == [
        "/", "f", "n", "N", "e", "G", "t", "w", "z", "Esc", "?",
    ]  # fmt: skip
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    expect(current(page)).to_have_text("1")
