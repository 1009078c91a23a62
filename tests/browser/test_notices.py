"""Notifications of the browser: by choice, once, and none without permission."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from jobs.models import Job
from jobs.statuses import JobStatus
from tests.browser.test_accessibility import LOOKS, assert_fine
from tests.browser.test_live import move
from tests.factories import make_job
from tests.waiting import eventually

# The real notification is shown, and noted; the tab is in the background.
NOTED = """
    window.noted = [];
    // A blank page has none.
    const registrations = window.ServiceWorkerRegistration?.prototype ?? {};
    const show = registrations.showNotification;
    registrations.showNotification = function (title, options) {
        return show.call(this, title, options).then(() => noted.push(title));
    };
    Object.defineProperty(document, "hidden", { get: () => true });
"""
NOTED_OF_PAGES = """
    window.noted = [];
    const Real = window.Notification;
    window.Notification = class extends Real {
        constructor(title, options) { super(title, options); noted.push(title); }
    };
"""
# As Chrome on Android, which shows only notifications of a service worker.
NO_CONSTRUCTOR = """
    const { permission, requestPermission } = Notification;
    window.Notification = class {
        static permission = permission;
        static requestPermission = requestPermission.bind(Notification);
        constructor() { throw new TypeError("Illegal constructor"); }
    };
"""
SHOWN = """async () => {
    const all = await navigator.serviceWorker.getRegistrations();
    const shown = await Promise.all(all.map((each) => each.getNotifications()));
    return shown.flat().map(({ title, data }) => [title, data.href]);
}"""
SHORT_PATIENCE = """
    const whole = AbortSignal.timeout;
    AbortSignal.timeout = () => whole.call(AbortSignal, 300);
"""


@pytest.fixture
def allowed(page):
    """Open two tabs in a browser that has been given permission."""
    page.context.grant_permissions(["notifications"])
    page.context.add_init_script(NOTED)
    return page, page.context.new_page()


def noted_in(*tabs: Page) -> list[str]:
    """Return the titles of the notifications of the tabs."""
    return [title for tab in tabs for title in tab.evaluate("noted")]


@pytest.mark.feature("P7.1")
def test_a_watched_job_notifies_of_its_start_and_its_end_once_in_all_tabs(allowed, project, ada):
    job = make_job(project, name="ppo", submitted_by=ada)
    make_job(project, name="other", submitted_by=ada)
    for tab in allowed:
        tab.goto(f"/rl/jobs/{job.pk}")
        tab.locator("#log-state[data-state=live]").wait_for()
    first, second = allowed
    first.get_by_role("button", name="Notify me").click()
    expect(first.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "true")
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(job, status)
    assert eventually(lambda: len(noted_in(*allowed)) == 1)
    move(job, JobStatus.SUCCEEDED)
    assert eventually(lambda: len(noted_in(*allowed)) == 2)
    assert noted_in(*allowed) == [f"ppo #{job.pk} has started", f"ppo #{job.pk} has ended"]
    second.goto("/settings/notifications")
    expect(second.get_by_text("None. Choose")).to_be_visible()


def test_the_own_jobs_notify_from_any_page_but_not_of_what_was_before(allowed, project, ada):
    old = make_job(project, name="old", status=JobStatus.RUNNING, submitted_by=ada)
    tab = allowed[0]
    tab.goto("/settings/notifications")
    with tab.expect_response(re.compile("/settings/notices")):
        tab.get_by_label("Notify me when one of my jobs starts or ends").check()
    tab.goto("/rl/jobs")
    tab.locator("#live-state[data-state=on]").wait_for()
    move(old, JobStatus.SUCCEEDED)
    assert eventually(lambda: noted_in(tab))
    assert noted_in(tab) == [f"old #{old.pk} has ended"]


def test_a_job_notifies_also_on_the_page_of_a_job_whose_number_begins_like_it_and_deleted_ones_go(
    page, project, ada
):
    page.context.grant_permissions(["notifications"])
    page.context.add_init_script(NOTED.replace('"hidden", { get: () => true }', '"hidden", {}'))
    jobs = [make_job(project, pk=pk, name="ppo", submitted_by=ada) for pk in (700, 7001, 701)]
    for job in jobs[::2]:
        page.goto(f"/rl/jobs/{job.pk}")
        page.get_by_role("button", name="Notify me").click()
    page.goto("/rl/jobs/7001")
    page.locator("#log-state[data-state=live]").wait_for()
    jobs[2].delete()
    page.bring_to_front()
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(jobs[0], status)
    assert eventually(lambda: noted_in(page) == ["ppo #700 has started"])
    page.goto("/settings/notifications")
    expect(page.get_by_role("listitem").filter(has_text="ppo #")).to_have_count(1)


def test_the_jobs_before_the_choice_are_no_news_though_an_answer_is_under_way(
    allowed, project, ada
):
    watched = make_job(project, name="watched", submitted_by=ada)
    make_job(project, name="old", status=JobStatus.RUNNING, submitted_by=ada)
    tab = allowed[0]
    tab.goto(f"/rl/jobs/{watched.pk}")
    tab.get_by_role("button", name="Notify me").click()
    held: list[Route] = []

    def hold(route: Route) -> None:
        # The page of the job may have asked as well before it was left.
        is_next = route.request.headers["referer"].endswith("/settings/notifications")
        held.append(route) if is_next else route.continue_()

    tab.route("**/settings/notices?*own=", hold)
    tab.goto("/settings/notifications")
    assert eventually(lambda: tab.evaluate("document.title") and held)
    with tab.expect_response(re.compile("/settings/notices.*own=1")):
        tab.get_by_label("Notify me when one of my jobs starts or ends").check()
        held[0].continue_()
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(watched, status)
    assert eventually(lambda: tab.evaluate("noted"))
    assert noted_in(tab) == [f"watched #{watched.pk} has started"]


def test_a_job_that_is_watched_again_while_it_runs_does_not_notify_of_its_start(
    allowed, project, ada
):
    job = make_job(project, name="ppo", submitted_by=ada)
    tab = allowed[0]
    tab.goto(f"/rl/jobs/{job.pk}")
    bell = tab.get_by_role("button", name="Notify me")
    for pressed in ("true", "false"):
        bell.click()
        expect(bell).to_have_attribute("aria-pressed", pressed)
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(job, status)
    expect(bell).to_have_attribute("data-phase", "running")
    with tab.expect_response(re.compile(f"/settings/notices.jobs={job.pk}")):
        bell.click()
    move(job, JobStatus.SUCCEEDED)
    assert eventually(lambda: noted_in(tab))
    assert noted_in(tab) == [f"ppo #{job.pk} has ended"]


def test_a_look_that_is_never_answered_does_not_end_the_notifications(allowed, project, ada):
    job = make_job(project, name="ppo", submitted_by=ada)
    tab = allowed[0]
    tab.add_init_script(SHORT_PATIENCE)
    tab.goto("/settings/notifications")
    hung: list[Route] = []
    tab.route("**/settings/notices?*", lambda route: hung.append(route), times=1)  # noqa: PLW0108 - of Playwright
    tab.get_by_label("Notify me when one of my jobs starts or ends").check()
    assert eventually(lambda: tab.evaluate("document.title") and hung)
    with tab.expect_response(re.compile("/settings/notices")):
        pass
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(job, status)
    assert eventually(lambda: noted_in(tab), timeout_s=30)


def watch_start_of(page: Page, job: Job) -> None:
    """Choose to be notified of a job, leave its page, and start it."""
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_role("button", name="Notify me").click()
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(job, status)


def test_a_browser_without_notifications_of_pages_shows_those_of_the_service_worker(
    page, project, ada
):
    page.context.grant_permissions(["notifications"])
    page.context.add_init_script(NO_CONSTRUCTOR)
    job = make_job(project, name="ppo", submitted_by=ada)
    watch_start_of(page, job)
    assert eventually(lambda: page.evaluate(SHOWN))
    assert page.evaluate(SHOWN) == [[f"ppo #{job.pk} has started", f"/rl/jobs/{job.pk}"]]


def test_a_browser_without_service_workers_shows_notifications_of_the_page(page, project, ada):
    page.context.grant_permissions(["notifications"])
    page.context.add_init_script(NOTED_OF_PAGES + "delete Navigator.prototype.serviceWorker;")
    job = make_job(project, name="ppo", submitted_by=ada)
    watch_start_of(page, job)
    assert eventually(lambda: noted_in(page) == [f"ppo #{job.pk} has started"])


def test_without_permission_the_page_says_so_and_nothing_is_chosen(page, faults, project, ada):
    job = make_job(project, submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    bell = page.get_by_role("button", name="Notify me")
    bell.click()
    expect(page.get_by_text("This browser blocks notifications")).to_be_visible()
    expect(bell).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_on_the_page_of_notifications(page, look):
    width, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto("/settings/notifications")
    assert_fine(page)
