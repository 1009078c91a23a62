"""Questions before an action, while the page changes beneath their dialog."""

from __future__ import annotations

from playwright.sync_api import expect

from jobs.lifecycle import move
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Cluster
from jobs.statuses import ClusterStatus, JobStatus, StopReason
from tests.browser.test_graph import LIVE, make_array
from tests.browser.test_machines import clusters, fake
from tests.factories import make_job

__all__ = ["clusters", "fake"]


def test_yes_does_what_was_asked_though_the_buttons_of_the_row_changed(
    page, fake, clusters, project
):
    page.goto("/rl/machines")
    page.locator(LIVE).wait_for()
    row = page.locator("tr", has_text="sft-baseline")
    row.get_by_role("button", name="Terminate").click()
    Cluster.objects.filter(infra="aws/us-east-1").update(status=ClusterStatus.STOPPED)
    publish_clusters_on_commit(project.pk)
    expect(row.get_by_role("button", name="Stop", include_hidden=True)).to_have_count(0)
    page.get_by_role("button", name="Terminate the cluster").click()
    page.get_by_text("is being terminated.").wait_for()


def test_a_question_about_what_has_ended_meanwhile_closes(page, project, ada):
    array = make_array(project, ada, 1)
    page.goto(f"/rl/arrays/{array.pk}")
    page.locator(LIVE).wait_for()
    page.get_by_role("button", name="Cancel all").click()
    move(array.jobs.get(), JobStatus.CANCELLED, reason=StopReason.CANCELLED_BY_USER, message="No.")
    page.locator("#array-cancel").wait_for(state="detached")
    page.get_by_role("button", name="Cancel the jobs").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_each_press_asks_again_when_the_answer_left_the_page_as_it_was(page, project, ada):
    make_job(project, submitted_by=ada)
    array = make_array(project, ada, 1)
    page.goto(f"/rl/arrays/{array.pk}")
    page.locator(LIVE).wait_for()
    page.route("**/cancel", lambda route: route.fulfill(status=204))
    for _ in range(2):
        page.get_by_role("button", name="Cancel all").click()
        expect(page.get_by_role("dialog", name="Cancel all jobs of lr-sweep?")).to_be_visible()
        with page.expect_request("**/cancel"):
            page.get_by_role("button", name="Cancel the jobs").click()


def test_a_form_that_asks_and_is_sent_only_once_is_sent_after_yes(page, project, ada):
    job = make_job(project, name="sft", status=JobStatus.RUNNING, submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_role("button", name="Rerun", exact=True).click()
    dialog = page.get_by_role("dialog", name="Run a second job?")
    dialog.get_by_role("button", name="Rerun").click()
    page.get_by_text(f"Job {job.pk} was rerun as job").wait_for()
