"""Addresses of lines: made by clicking numbers, and opened where they lead, whatever came later."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs.lifecycle import move
from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.browser.test_live import Runner, numbers
from tests.factories import make_job


@pytest.fixture
def job(project, ada):
    return make_job(project, status=JobStatus.RUNNING, submitted_by=ada)


def number(page, line: int, attempt: int = 1):
    return page.locator(f"#A{attempt}-L{line} .n")


def targets(page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('li.target')].map((li) => li.dataset.place)"
    )


@pytest.mark.feature("P3.2")
def test_a_click_names_a_line_and_shift_click_a_range_in_either_direction(page, job):
    Runner(job).write(9)
    page.goto(f"/rl/jobs/{job.pk}")
    number(page, 4).click()
    expect(page).to_have_url(re.compile(r"#A1-L4$"))
    assert targets(page) == ["1:4"]
    number(page, 6).click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile(r"#A1-L4-L6$"))
    assert targets(page) == ["1:4", "1:5", "1:6"]
    number(page, 2).click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile(r"#A1-L2-L4$"))
    assert targets(page) == ["1:2", "1:3", "1:4"]
    number(page, 9).click()
    assert targets(page) == ["1:9"]


@pytest.mark.feature("P3.2")
def test_an_address_of_lines_of_one_attempt_holds_when_much_is_written_later(page, job):
    first = Runner(job)
    first.write(5, "first")
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    second = Runner(job)
    for _ in range(3):
        second.write(1000)
    page.goto(f"/rl/jobs/{job.pk}#A2-L120-L140")
    expect(number(page, 120, attempt=2)).to_be_in_viewport()
    assert targets(page) == [f"2:{line}" for line in range(120, 141)]
    expect(page.locator("[data-follow]")).to_have_attribute("aria-pressed", "false")
    # The stream begins at the end that there is when it begins.
    page.locator("#log-state[data-state=live]").wait_for()
    for _ in range(3):
        second.write(1000)
    page.get_by_role("button", name=re.compile("new$")).wait_for()
    expect(number(page, 120, attempt=2)).to_be_in_viewport()
    page.reload()
    expect(number(page, 120, attempt=2)).to_be_in_viewport()
    assert len(targets(page)) == 21
    assert len(numbers(page)) <= 1000


def test_going_to_another_address_on_the_same_page_leads_there(page, job):
    runner = Runner(job)
    for _ in range(4):
        runner.write(1000)
    page.goto(f"/rl/jobs/{job.pk}#L500")
    expect(number(page, 500)).to_be_in_viewport()
    page.evaluate("location.hash = '#A1-L3500-L3501'")
    expect(number(page, 3500)).to_be_in_viewport()
    assert targets(page) == ["1:3500", "1:3501"]


def test_what_follows_an_address_is_read_on_page_by_page_up_to_new_lines(page, job):
    runner = Runner(job)
    for _ in range(3):
        runner.write(1000)
    page.goto(f"/rl/jobs/{job.pk}#L500")
    expect(number(page, 500)).to_be_in_viewport()
    later = page.get_by_role("button", name="Load later lines")
    for last in (2300, 3000):
        later.click()
        number(page, last).wait_for(state="attached")
    expect(later).to_be_hidden()
    runner.write(5)
    number(page, 3005).wait_for(state="attached")
    assert numbers(page) == list(range(301, 3006))


@pytest.mark.parametrize("end", ["#A1-L0", "#A9-L5", "#A1-L<b>", "#A1-L7-L3", "#A1-L99999"])
def test_an_address_that_names_no_line_or_not_in_order_harms_nothing(page, job, end):
    Runner(job).write(9)
    page.goto(f"/rl/jobs/{job.pk}{end}")
    page.get_by_text("step 9 of").wait_for()
    page.locator("#log-state[data-state=live]").wait_for()
    expected = [f"1:{line}" for line in range(3, 8)] if end.endswith("L7-L3") else []
    assert targets(page) == expected


def test_a_line_named_while_the_newest_are_awaited_leaves_the_page_live(page, project, ada):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=ada, num_nodes=2)
    runner = Runner(job, ranks=2)
    runner.write(9)
    page.goto(f"/rl/jobs/{job.pk}")
    page.locator("#log-state[data-state=live]").wait_for()
    page.route("**/logs?before=end*", lambda _: None)
    with page.expect_request("**/logs?before=end*"):
        page.locator("[data-rank='1']").click()
    page.evaluate("location.hash = '#A1-L4'")
    expect(number(page, 4)).to_be_in_viewport()
    runner.write(1)
    number(page, 20).wait_for(state="attached", timeout=10_000)
    move(job, JobStatus.SUCCEEDED)
    page.locator("#job-status").get_by_text("Succeeded").wait_for(timeout=10_000)
