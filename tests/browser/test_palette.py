"""The command palette: jobs, pages and actions by name, with the keyboard alone."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from jobs.lifecycle import move
from jobs.models import Job, Membership
from jobs.statuses import JobStatus, Role
from tests.browser.test_accessibility import LOOKS, assert_fine
from tests.browser.visits import PASSWORD, sign_in
from tests.factories import make_job, make_member, make_project


def opened(page: Page, query: str = "") -> Page:
    """Open the palette with its key and enter `query`."""
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search jobs, pages and actions")
    expect(field).to_be_focused()
    page.keyboard.insert_text(query)
    return page


def option(page: Page, name: str):
    return page.locator("#palette").get_by_role("option", name=name, exact=True)


@pytest.mark.feature("P7.1")
def test_a_job_is_found_by_a_part_of_its_name_or_its_number_and_is_recent_then(page, project, ada):
    jobs = [make_job(project, name=f"llama-{i}-sft", submitted_by=ada) for i in range(3)]
    make_job(make_project("secret-project"), name="llama-of-others")
    page.goto("/rl/queue")
    opened(page, "lama-1")
    found = option(page, f"llama-1-sft #{jobs[1].pk} Queued")
    expect(found).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("llama-of-others")).to_have_count(0)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/rl/jobs/{jobs[1].pk}")
    opened(page)
    first = page.locator("#palette [role=group]").first
    expect(first).to_contain_text("Recent")
    expect(first.get_by_role("option").first).to_contain_text("llama-1-sft")
    # The palette was closed before: nothing opens.
    page.keyboard.insert_text(f"#{jobs[0].pk}")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    opened(page)
    # Enter before the answer has come runs what the answer has.
    page.keyboard.insert_text(f"#{jobs[2].pk}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/rl/jobs/{jobs[2].pk}")


def test_the_pages_are_those_of_the_menus_and_of_the_permissions(page, visitors, project, address):
    page.goto("/rl/jobs")
    menu = page.get_by_role("navigation", name="Project").get_by_role("link").all_inner_texts()
    opened(page)
    shown = page.locator("#palette [role=option]").all_inner_texts()
    assert [each for each in shown if each in menu] == [*menu, "Overview"]
    assert {"Secrets", "Policies", "New template", "Submit a job"} <= set(shown)
    assert "Clouds" not in shown
    make_member(project, Role.VIEWER, username="vera", password=PASSWORD)
    other = visitors.open(address)
    sign_in(other, "vera")
    opened(other)
    shown = other.locator("#palette [role=option]").all_inner_texts()
    assert not {"Secrets", "New template", "Submit a job"} & set(shown)


def test_arrows_choose_and_escape_gives_the_focus_back(page, project, ada):
    make_job(project, submitted_by=ada)
    page.goto("/rl/jobs")
    page.get_by_label("Search by name or number").focus()
    opened(page, "settings of rl")
    expect(option(page, "General")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(option(page, "Members")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#palette [role=option]").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("Search by name or number")).to_be_focused()
    opened(page, "members")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rl/members")


@pytest.mark.feature("P7.1")
def test_actions_press_the_buttons_of_the_page(page, project, ada):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    opened(page, "open nodes")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Nodes")).to_have_attribute("aria-selected", "true")
    opened(page, "theme: dark")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    opened(page, "open a terminal")
    expect(option(page, "Open a terminal")).to_be_visible()
    page.keyboard.press("Escape")
    opened(page, "cancel")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=re.compile("^Cancel"))).to_be_visible()
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_text("Cancelled by ada.").first.wait_for()
    assert Job.objects.get().status in {JobStatus.STOPPING, JobStatus.CANCELLED}
    opened(page, "sign out")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sign-in*")


def test_an_action_whose_button_was_removed_meanwhile_is_reported_and_no_longer_offered(
    page, project, ada
):
    job = make_job(project, name="train", status=JobStatus.RUNNING, submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    page.locator("#log-state[data-state=live]").wait_for()
    opened(page, "cancel")
    expect(option(page, "Cancel")).to_have_attribute("aria-selected", "true")
    move(job, JobStatus.SUCCEEDED)
    page.locator("#cancel-button").wait_for(state="detached")
    page.keyboard.press("Enter")
    expect(page.locator("#palette-state")).to_have_text('"Cancel" is not on this page any more.')
    expect(option(page, "Cancel")).to_have_count(0)


def test_jobs_of_other_projects_are_found_also_on_a_page_of_no_project(page, ada):
    other = make_project("nlp")
    Membership.objects.create(project=other, user=ada, role=Role.VIEWER)
    job = make_job(other, name="llama-eval")
    page.goto("/settings/tokens")
    opened(page, "llama-ev")
    expect(option(page, f"llama-eval #{job.pk} Queued")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/nlp/jobs/{job.pk}")


def test_help_and_the_timeline_are_among_the_pages(page):
    page.goto("/rl/jobs")
    opened(page)
    shown = page.locator("#palette [role=option]").all_inner_texts()
    assert {"Timeline", "What's new", "Documentation", "API", "Job schema"} <= set(shown)


def test_labels_history_and_the_comparison_of_a_job_are_actions_of_its_page(page, project, ada):
    make_job(project, name="ppo", submitted_by=ada)
    job = make_job(project, name="ppo", submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    opened(page)
    shown = page.locator("#palette [role=option]").all_inner_texts()
    assert {"Rerun", "Cancel", "Hold"} <= set(shown)
    page.keyboard.insert_text("labels and note")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Labels and note of ppo")).to_be_visible()
    page.keyboard.press("Escape")
    opened(page, "compare with")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rl/compare?jobs=*")
    page.go_back()
    opened(page, "history: all runs")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rl/history?name=ppo")


def test_nothing_is_loaded_before_the_palette_is_opened(page):
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    assert not [each for each in requested if re.search(r"palette(?!/loader)", each)]
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("combobox")).to_be_focused()


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_in_the_palette_and_in_the_dialog_of_keys(page, project, ada, look):
    width, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto(f"/rl/jobs/{make_job(project, name='walk', submitted_by=ada).pk}")
    opened(page, "wal")
    expect(page.locator("#palette").get_by_text("walk #")).to_be_visible()
    assert_fine(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
