"""The runs of one name in a browser: compared by keyboard, and fine in every look; labels, live."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from jobs.actions.jobs.annotate import set_note
from jobs.models import Job
from jobs.permissions import Actor
from jobs.statuses import JobStatus
from tests.browser.test_accessibility import LOOKS, assert_fine
from tests.browser.test_keyboard import tab_to
from tests.browser.visits import PHONE, sign_in
from tests.integration.api.jobs.test_runs import add_series, make_run


@pytest.fixture
def runs(project: Any, ada: Any) -> list[Job]:
    """Create three runs of one name with metrics, the last of which failed."""
    runs = [
        make_run(project, took_s=600 + 90 * n, usd=f"{1.5 + n}", lr=f"0.{n + 1}", submitted_by=ada)
        for n in range(2)
    ]
    failed = {"status": JobStatus.FAILED, "stop_reason": "OOM", "exit_code": 137}
    message = "Rank 0 ran out of memory."
    runs.append(
        make_run(project, lr="0.3", submitted_by=ada, message=message, note="bad seed", **failed)
    )
    for place, job in enumerate(runs):
        add_series(job.attempts.get(), "loss", range(1, 20 + 10 * place))
        add_series(job.attempts.get(), "reward", range(1, 20 + 10 * place))
    return runs


def test_two_runs_are_compared_by_keyboard_and_the_address_can_be_shared(page, runs):
    page.goto(f"/rl/jobs/{runs[1].pk}")
    page.get_by_role("link", name="2 of 3").click()
    compare = page.get_by_role("button", name="Compare", exact=True)
    for job in (runs[2], runs[0]):
        tab_to(page, f"Select job {job.pk}")
        page.keyboard.press("Space")
        assert compare.is_disabled() == (job == runs[2])
    tab_to(page, "Compare")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/rl/compare?jobs={runs[2].pk},{runs[0].pk}")
    expect(page.get_by_role("row", name="envs.LR")).to_contain_text("0.1")
    page.get_by_role("link", name="By time").click()
    expect(page.get_by_text("Since the start of each run.")).to_be_visible()
    page.get_by_label("Number of a job to add").fill(str(runs[1].pk))
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name=f"ppo #{runs[1].pk}")).to_be_visible()
    page.get_by_role("link", name=f"Remove job {runs[2].pk}").click()
    page.wait_for_url(f"**/rl/compare?jobs={runs[0].pk},{runs[1].pk}&by=time")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_on_the_pages_of_runs(page, runs, look):
    width, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    numbers = ",".join(str(job.pk) for job in runs)
    for path in ("/rl/history?name=ppo", f"/rl/compare?jobs={numbers}", f"/rl/jobs/{runs[2].pk}"):
        page.goto(path)
        assert_fine(page)
    page.get_by_role("button", name="Edit labels and note").click()
    assert_fine(page)


def test_nothing_scrolls_sideways_on_a_phone(visitors, address, faults, runs):
    page = visitors.open(address, viewport=PHONE)
    sign_in(page)
    numbers = ",".join(str(job.pk) for job in runs)
    for path in ("/rl/history?name=ppo", f"/rl/compare?jobs={numbers}"):
        page.goto(path)
        boxes = page.locator(".scroll-x")
        too_wide = "boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth).length"
        assert boxes.count() and boxes.evaluate_all(too_wide) == 0, path


def test_labels_and_the_note_are_edited_and_arrive_at_open_pages(page, runs, ada):
    page.goto(f"/rl/jobs/{runs[0].pk}")
    tab_to(page, "Labels and note")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="Labels").fill("team=rl, draft")
    page.get_by_role("textbox", name="Note").fill("good seed")
    page.get_by_role("button", name="Save").click()
    notes = page.locator("#job-annotations")
    expect(notes.get_by_role("link", name="team=rl")).to_be_visible()
    expect(notes).to_contain_text("good seed")
    page.locator("#log-state[data-state]").wait_for()
    set_note(Actor(ada), Job.objects.get(pk=runs[0].pk), "seed of another user")
    expect(notes).to_contain_text("seed of another user")
