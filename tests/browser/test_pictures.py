"""Every page and state, in light, in dark and on a phone: fine for axe, nothing sticks out.

The pictures are stored in .results/screenshots; with KEEP_PICTURES=1 those of the documents are
renewed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import Membership
from jobs.statuses import Role
from tests.browser import team, team_queue
from tests.browser.conftest import PASSWORD
from tests.browser.editors import CodeEditor
from tests.browser.visits import DESKTOP, PHONE
from tests.factories import make_project

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / ".results" / "screenshots"
KEPT = {
    ("light", "table"): "job-table.png",
    ("light", "running"): "job-page.png",
    ("light", "failed"): "failed-job.png",
    ("light", "submit-errors"): "submit-errors.png",
    ("dark", "running"): "job-page-dark.png",
    ("phone", "table"): "phone-table.png",
}
LOOKS = {
    "light": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Camera:
    """A camera that checks a page in every look, takes its picture, and notes what is not fine."""

    def __init__(self, page: Page, look: str) -> None:
        self.page = page
        self.look = look
        self.problems: list[str] = []

    def take(self, scene: str) -> None:
        """Take a picture of the page as it is."""
        found = Axe().run(self.page)
        if found.violations_count:
            self.problems.append(f"{scene}: {found.generate_report()}")
        if (excess := self.page.evaluate(TOO_WIDE)) > 0:
            self.problems.append(f"{scene}: {excess} px too wide")
        path = PICTURES / self.look / f"{scene}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
        if self.look == "phone":
            self.page.screenshot(path=path.with_name(f"{scene}-whole.png"), full_page=True)
        if os.environ.get("KEEP_PICTURES") and (self.look, scene) in KEPT:
            shutil.copy(path, ROOT / "docs" / "images" / KEPT[self.look, scene])

    def at(self, address: str, scene: str, until: str = "") -> None:
        """Open an address, wait until `until` is visible, and take a picture."""
        self.page.goto(address)
        if until:
            self.page.locator(until).first.wait_for()
        self.take(scene)


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults) -> Camera:
    return Camera(visitors.open(address, **LOOKS[request.param]), request.param)


def signing_in(camera: Camera, ada) -> None:
    page = camera.page
    camera.at("/sign-in", "sign-in")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("alert").wait_for()
    camera.take("sign-in-wrong")
    camera.at(f"/sign-in/once/{create_sign_in_link(ada)}", "sign-in-link")
    page.goto("/sign-in")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/rl")


def tables(camera: Camera) -> None:
    page = camera.page
    camera.at("/rl/jobs", "table", "#live-state[data-state=on]")
    camera.at("/rl/jobs?q=nothing-like-it", "table-no-match", "#live-state[data-state=on]")
    page.get_by_label("Account: ada").click()
    camera.take("account-menu")
    camera.at("/rl/jobs?user=ada&sort=name&pin=1", "table-filtered", "#live-state[data-state=on]")
    page.get_by_text("Save view").click()
    page.get_by_label("Name of the view").fill("Mine, by name")
    page.get_by_label("Shared with all members").check()
    camera.take("save-view")
    page.get_by_role("button", name="Save", exact=True).click()
    selected(camera)


def selected(camera: Camera) -> None:
    page = camera.page
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    for number in (131, team.HELD, team.FAILED):
        page.get_by_label(f"Select job {number}", exact=True).check()
    camera.take("table-selected")
    page.get_by_role("button", name="Priority").click()
    page.get_by_role("heading", name="Change the priority of 2 jobs?").wait_for()
    camera.take("bulk-confirm")
    page.get_by_label("Priority").fill("80")
    page.get_by_role("button", name="Change the priority of 2 jobs").click()
    page.get_by_role("heading", name="2 jobs prioritized").wait_for()
    camera.take("bulk-done")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Priority changed from 80 to").first.wait_for()


def submitting(camera: Camera, faults) -> None:
    page = camera.page
    camera.at("/rl/jobs/new", "submit", "#verdict .ok")
    editor = CodeEditor(page)
    wrong = team.TRAINING.replace("num_nodes: 4", "num_node: 4").replace("3, gen", "two, gen")
    editor.fill(wrong)
    page.get_by_role("button", name="Line 3").wait_for()
    camera.take("submit-errors")
    page.reload()
    page.get_by_role("button", name="Restore draft").wait_for()
    camera.take("submit-draft")
    page.get_by_role("button", name="Discard").click()


def writing(camera: Camera) -> None:
    page = camera.page
    page.goto(f"/rl/jobs/new?from={team.SUCCEEDED}")
    editor = CodeEditor(page)
    editor.fill(editor.text.replace("name: ", "name: again-", 1))
    page.locator(".cm-deletedLine").first.wait_for()
    camera.take("submit-changes")
    editor.type_after("name: again", "\nportal:\nif")
    page.get_by_role("option", name="if_dependency_fails").wait_for()
    camera.take("submit-completion")
    page.keyboard.press("Escape")
    page.goto("/rl/new-template?template=torchrun")
    editor = CodeEditor(page)
    editor.content.get_by_text("parameters", exact=True).hover()
    page.locator(".explanation").wait_for()
    camera.take("template-editor")
    camera.at("/rl/templates", "templates")
    camera.at("/rl/templates/torchrun", "template")


def jobs(camera: Camera) -> None:
    live = "#log-state[data-state=live]"
    over = "#log-state[data-state=ended]"
    camera.at(f"/rl/jobs/{team.RUNNING}", "running", live)
    camera.at(f"/rl/jobs/{team.HELD}", "held", live)
    camera.at("/rl/jobs/131", "queued", live)
    camera.at(f"/rl/jobs/{team.SUCCEEDED}", "succeeded", over)
    camera.at(f"/rl/jobs/{team.CANCELLED}", "cancelled", over)
    camera.at(f"/rl/jobs/{team.FAILED}", "failed", over)
    for tab in ("events", "workers", "spec"):
        camera.at(f"/rl/jobs/{team.FAILED}/{tab}", f"failed-{tab}")


def schedules(camera: Camera, faults) -> None:
    page = camera.page
    camera.at("/rl/schedules", "schedules")
    camera.at("/rl/schedules/nightly-eval", "schedule")
    page.get_by_role("button", name="Delete", exact=True).click()
    camera.take("schedule-delete-dialog")
    camera.at("/rl/new-schedule", "schedule-new")
    page.get_by_label("Name", exact=True).fill("nightly-eval")
    page.get_by_label("Cron expression", exact=True).fill("61 3 * * *")
    page.get_by_label("Time zone", exact=True).fill("Berlin")
    page.get_by_role("button", name="Create schedule").click()
    page.get_by_text("There is no time zone").wait_for()
    camera.take("schedule-wrong")
    faults.expect("422")


def dialogs(camera: Camera) -> None:
    ask: Callable[[str], None] = lambda name: camera.page.get_by_role(  # noqa: E731
        "button", name=name, exact=True
    ).click()
    camera.page.goto(f"/rl/jobs/{team.RUNNING}")
    ask("Cancel")
    camera.take("cancel-dialog")
    camera.page.goto(f"/rl/jobs/{team.HELD}")
    ask("Priority")
    camera.take("priority-dialog")
    camera.page.goto(f"/rl/jobs/{team.FAILED}")
    ask("Delete")
    camera.take("delete-dialog")
    camera.page.goto("/rl/members")
    ask("Remove vera")
    camera.take("remove-dialog")


def only_the_log(camera: Camera) -> None:
    camera.at(f"/rl/jobs/{team.RUNNING}?zen=1", "zen", "#log-state[data-state=live]")


def palette(camera: Camera) -> None:
    page = camera.page
    page.goto(f"/rl/jobs/{team.RUNNING}")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("combobox").wait_for()
    camera.take("palette")
    page.keyboard.insert_text("e")
    page.locator("#palette").get_by_text("Jobs of rl").wait_for()
    camera.take("palette-search")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    camera.take("keys")


def arrays(camera: Camera, project, ada) -> None:
    array = team_queue.make_sweep(project, ada)
    camera.at(f"/rl/arrays/{array.pk}", "array", "#live-state[data-state=on]")
    camera.page.get_by_role("button", name="Cancel all").click()
    camera.take("array-cancel-dialog")
    after = array.jobs.get(array_index=4)
    camera.at(f"/rl/jobs/{after.pk}", "waits-for-others")
    camera.at("/rl/jobs", "table-with-array", "#live-state[data-state=on]")


def people(camera: Camera) -> None:
    page = camera.page
    camera.at("/rl/members", "members")
    camera.at("/settings/tokens", "tokens")
    camera.at("/settings/password", "password")
    camera.at("/settings/time", "time-zone")
    camera.at("/settings/help/docs/tutorial/first-job.md", "documentation")
    page.goto("/settings/tokens")
    page.get_by_label("Name", exact=True).fill("new")
    page.get_by_role("button", name="Create token").click()
    page.locator("#new-token").wait_for()
    camera.take("token-new")


def projects(camera: Camera, ada) -> None:
    camera.at("/rl/settings", "project-settings")
    camera.page.get_by_role("button", name="Archive the project").click()
    camera.take("project-archive-dialog")
    old = make_project("old-models", archived_at=timezone.now())
    Membership.objects.create(project=old, user=ada, role=Role.ADMIN)
    camera.at("/old-models/settings", "project-archived")
    camera.page.get_by_role("button", name="Delete the project").click()
    camera.page.get_by_text("Type the project's name, old-models").wait_for()
    camera.take("project-delete-refused")
    camera.at("/settings/projects", "projects")


def money(camera: Camera, project, ada) -> None:
    camera.at("/rl/usage", "usage-none")
    team_queue.make_spending(project)
    ada.is_superuser = True
    ada.save()
    camera.at("/rl/usage", "usage")
    for name in ("users", "users/ada", "all-projects", "queues", "pools", "quotas", "clouds"):
        camera.at(f"/settings/{name}", f"admin-{name.replace('/', '-')}")
    camera.at("/settings/add-cloud/azure", "admin-add-cloud")
    camera.at("/rl/settings/policies", "project-policies")
    camera.at("/rl/usage", "usage")
    camera.page.get_by_text("Change the budget").click()
    camera.page.get_by_label("US$ per month").scroll_into_view_if_needed()
    camera.take("usage-form")


def wrong_host(camera: Camera, address: str, faults) -> None:
    # Chromium finds every name below localhost on this machine.
    camera.at(address.replace("127.0.0.1", "elsewhere.localhost"), "wrong-host")
    assert camera.page.get_by_role("heading").inner_text().startswith("The portal does not answer")
    faults.expect("400")


def refusals(camera: Camera, faults) -> None:
    camera.at("/rl/jobs/99999", "not-found")
    faults.expect("404")
    camera.page.goto(f"/rl/jobs/{team.RUNNING}")
    camera.page.locator("#log-state[data-state=live]").wait_for()
    camera.page.context.set_offline(True)
    camera.page.get_by_text("You are offline").wait_for()
    camera.take("connection-lost")
    camera.page.context.set_offline(False)
    faults.forgive_unreachable()


@pytest.mark.feature("P7.1")
@pytest.mark.timeout(600)  # Axe checks a hundred pages one after the other.
def test_every_page_and_state_is_fine_for_axe_and_fits_its_width(
    camera, address, project, ada, faults
):
    wrong_host(camera, address, faults)
    signing_in(camera, ada)
    camera.at("/rl", "overview-empty", "#live-state[data-state=on]")
    camera.at("/rl/jobs", "empty", "#live-state[data-state=on]")
    team.make_busy_day(project, ada)
    team.make_tokens(ada)
    team_queue.make_schedules(project, ada)
    make_project("evals")
    tables(camera)
    submitting(camera, faults)
    writing(camera)
    jobs(camera)
    schedules(camera, faults)
    dialogs(camera)
    palette(camera)
    only_the_log(camera)
    arrays(camera, project, ada)
    people(camera)
    projects(camera, ada)
    money(camera, project, ada)
    refusals(camera, faults)
    assert camera.problems == []
