"""Live updates: rows, the head of a job, the log, and how the log treats its reader."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.actions.jobs.cancel import cancel_job
from jobs.attempt_tokens import attempt_token
from jobs.lifecycle import move
from jobs.permissions import Actor
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame


class Runner:
    """A writer that posts lines of one attempt as its runner does."""

    def __init__(self, job: Any, ranks: int = 1) -> None:
        self.attempt = make_attempt(job)
        self.token = attempt_token(job.pk, self.attempt.number)
        self.ranks = ranks
        self.sent = 0

    def write(self, count: int, words: str = "step") -> None:
        frames = []
        for _ in range(count):
            self.sent += 1
            for rank in range(self.ranks):
                text = f"{words} {self.sent} of rank {rank}"
                frames.append(frame(self.sent, "line", rank=rank, stream="stdout", text=text))
        ingest_frames(self.attempt.pk, self.token, body(*frames))


@pytest.fixture
def job(project, ada):
    return make_job(project, status=JobStatus.RUNNING, submitted_by=ada, num_nodes=2)


def numbers(page):
    places = "[...document.querySelectorAll('#log-lines li')].map((line) => line.dataset.place)"
    return [int(place.split(":")[1]) for place in page.evaluate(places)]


def scroll(page, to):
    page.evaluate(f"document.getElementById('log').scrollTop = {to}")


def test_a_new_job_and_its_changes_come_into_the_table_by_themselves(page, project, ada):
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    job = make_job(project, name="newcomer", submitted_by=ada)
    cancel_job(Actor(ada), job)
    page.locator(f"#job-{job.pk}").get_by_text("Cancelled", exact=True).wait_for()


def test_a_live_change_leaves_focus_and_filters_alone(page, project, ada, job):
    page.goto("/rl/jobs?status=RUNNING")
    page.locator("#live-state[data-state=on]").wait_for()
    page.get_by_role("link", name="hello", exact=True).focus()
    move(make_job(project, status=JobStatus.SETTING_UP, name="second"), JobStatus.RUNNING)
    page.get_by_role("link", name="second", exact=True).wait_for()
    assert page.evaluate("document.activeElement.innerText") == "hello"
    move(job, JobStatus.SUCCEEDED)
    page.get_by_role("link", name="hello", exact=True).wait_for(state="detached")


def test_the_head_of_a_job_follows_its_status(page, job):
    page.goto(f"/rl/jobs/{job.pk}")
    page.locator("#log-state[data-state=live]").wait_for()
    move(job, JobStatus.SUCCEEDED, message="The program finished.")
    page.locator("#job-status").get_by_text("Succeeded").wait_for()
    page.locator("#job-ending").get_by_text("The program finished.").wait_for()
    page.get_by_text("Log complete").wait_for()


def test_the_browser_tab_of_a_job_follows_its_status(page, job):
    def icon():
        return page.locator("link[rel=icon]").get_attribute("href")

    page.goto(f"/rl/jobs/{job.pk}")
    expect(page).to_have_title(re.compile(rf"^Running · {job.name} #{job.pk} · "))
    running = icon()
    assert running.startswith("data:image/svg+xml,")
    page.locator("#log-state[data-state=live]").wait_for()
    move(job, JobStatus.SUCCEEDED, message="The program finished.")
    expect(page).to_have_title(re.compile(r"^Succeeded · "))
    assert icon() != running


@pytest.mark.feature("P3.2")
def test_lines_of_all_ranks_appear_as_they_are_written_and_one_rank_can_be_chosen(page, job):
    runner = Runner(job, ranks=2)
    runner.write(3)
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_text("step 3 of rank 1").wait_for()
    runner.write(1)
    page.get_by_text("step 4 of rank 1").wait_for()
    page.get_by_role("button", name="1", exact=True).click()
    page.get_by_text("step 1 of rank 0").wait_for(state="detached")
    runner.write(1)
    page.get_by_text("step 5 of rank 1").wait_for()
    assert page.get_by_text("of rank 0").count() == 0


def test_a_reader_who_scrolls_up_is_left_in_peace_until_they_jump_to_the_newest(page, job):
    runner = Runner(job)
    runner.write(400)
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_text("step 400 of").wait_for()
    scroll(page, 100)
    jump = page.get_by_role("button", name="Jump to newest")
    jump.wait_for()
    runner.write(5)
    page.get_by_role("button", name="Jump to newest · 5 new").wait_for()
    assert page.evaluate("document.getElementById('log').scrollTop") == 100
    jump.click()
    page.get_by_text("step 405 of").wait_for()
    assert not jump.is_visible()
    runner.write(1)
    page.get_by_text("step 406 of").wait_for()
    bottom = "((log) => log.scrollHeight - log.scrollTop - log.clientHeight)"
    assert page.evaluate(f"{bottom}(document.getElementById('log'))") < 2


def test_a_long_log_is_bounded_in_the_page_and_earlier_lines_can_be_had(page, job):
    runner = Runner(job)
    for _ in range(6):
        runner.write(1000)
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_text("step 6000 of").wait_for()
    assert numbers(page) == list(range(5001, 6001))
    scroll(page, 0)
    page.get_by_role("button", name="Load earlier lines").click()
    page.get_by_text("step 4001 of").wait_for(state="attached")
    assert numbers(page) == list(range(4001, 6001))


def test_a_flood_is_drawn_as_its_newest_lines_without_a_hole(page, job):
    runner = Runner(job)
    page.goto(f"/rl/jobs/{job.pk}")
    page.locator("#log-state[data-state=live]").wait_for()
    for _ in range(12):
        runner.write(1000)
    page.get_by_text("step 12000 of").wait_for()
    shown = numbers(page)
    assert shown == list(range(shown[0], 12001))
    assert len(shown) <= 4500


def test_an_address_with_a_line_opens_there(page, job):
    runner = Runner(job)
    for _ in range(3):
        runner.write(1000)
    page.goto(f"/rl/jobs/{job.pk}#L1200")
    page.get_by_text("step 1200 of").wait_for()
    assert page.locator("li.target").inner_text().split()[0] == "1200"
    assert page.get_by_text("step 1200 of").is_visible()


def test_an_address_with_a_line_counts_only_lines_written_since(page, job):
    runner = Runner(job)
    for _ in range(3):
        runner.write(1000)
    page.goto(f"/rl/jobs/{job.pk}#L1200")
    page.locator("#log-state[data-state=live]").wait_for()
    runner.write(5)
    page.get_by_role("button", name="Jump to newest · 5 new").wait_for()


def test_an_address_with_a_line_that_is_not_there_opens_at_the_end(page, job):
    Runner(job).write(3)
    page.goto(f"/rl/jobs/{job.pk}#L99999")
    page.get_by_text("step 3 of").wait_for()
    page.locator("#log-state[data-state=live]").wait_for()


@pytest.mark.feature("P3.2")
def test_colors_are_drawn_and_markup_stays_text(page, job):
    runner = Runner(job)
    link = "\x1b]8;;https://hub.example/run/7\x1b\\the run\x1b]8;;\x1b\\\x1b(B"
    runner.write(1, f"\x1b[31mred\x1b[0m <b>bold</b> \x1b[2K\x1b]0;title\x07{link}")
    page.goto(f"/rl/jobs/{job.pk}")
    line = page.locator("#log-lines .t").first
    line.wait_for()
    assert line.inner_text() == "red <b>bold</b> the run 1 of rank 0"
    assert line.locator(".a31").inner_text() == "red"


def test_the_focus_stays_on_an_element_that_moves_among_others(page, project):
    page.goto("/rl/jobs")
    page.evaluate(
        """async () => {
            const link = (id) => `<a id="${id}" href="#${id}">${id}</a>`;
            const list = (...ids) => `<p id="walk">${ids.map(link).join("")}</p>`;
            document.querySelector("main").insertAdjacentHTML("beforeend", list("one", "two"));
            document.getElementById("two").focus();
            const name = [...performance.getEntriesByType("resource")]
                .find(({ name }) => name.includes("/morph")).name;
            (await import(name)).morphParts(list("two", "one"));
        }"""
    )
    assert page.locator("#walk").inner_text() == "twoone"
    assert page.evaluate("document.activeElement.id") == "two"
