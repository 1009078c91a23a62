"""The timeline of the queue and of one job, in every look."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from jobs.live.channel import publish_queue_on_commit
from jobs.models import Attempt, Cluster, Job, JobEvent
from jobs.statuses import JobStatus
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.test_queue import LIVE, fake, gpu_job, make_shared_machines
from tests.browser.visits import sign_in
from tests.factories import make_job

__all__ = ["fake"]
pytestmark = pytest.mark.feature("P5.5")


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, ada, fake) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


def spread(project, ada) -> None:
    """Let running jobs have begun at different times, and others have ended."""
    now = timezone.now()
    for number, attempt in enumerate(Attempt.objects.filter(ended_at=None)):
        began = now - timedelta(minutes=15 + 25 * number)
        Attempt.objects.filter(pk=attempt.pk).update(created_at=began, run_started_at=began)
        # The second one has no limit.
        limit = None if number else 3600 * 2
        Job.objects.filter(pk=attempt.job_id).update(duration_s=limit)
    for number, status in enumerate(("SUCCEEDED", "FAILED", "SUCCEEDED", "CANCELLED") * 3):
        job = gpu_job(project, ada, 1, "train", name=f"eval-{number}", status=JobStatus(status))
        began = now - timedelta(minutes=170 - 13 * number)
        ended = began + timedelta(minutes=8 + 5 * (number % 4))
        Attempt.objects.filter(job=job).update(created_at=began, ended_at=ended, exit_code=0)
        Cluster.objects.filter(attempts__job=job).update(status="GONE", gone_at=ended)


def make_life(project, ada) -> Job:
    """Create a job that waited, ran, lost a worker, recovered and runs again."""
    now = timezone.now()
    job = make_job(project, name="long", status=JobStatus.RUNNING, submitted_by=ada)
    Job.objects.filter(pk=job.pk).update(created_at=now - timedelta(hours=5))
    before = ""
    for status, minutes in (
        ("PROVISIONING", 200),
        ("SETTING_UP", 195),
        ("RUNNING", 180),
        ("RECOVERING", 70),
        ("PROVISIONING", 68),
        ("SETTING_UP", 64),
        ("RUNNING", 60),
    ):
        event = JobEvent.objects.create(job=job, old_status=before, new_status=status)
        JobEvent.objects.filter(pk=event.pk).update(at=now - timedelta(minutes=minutes))
        before = status
    return job


def test_the_timelines_are_fine_in_every_look(camera, project, ada):
    make_shared_machines(project)
    spread(project, ada)
    camera.at("/rl/queue/timeline", "timeline", LIVE)
    camera.at("/rl/queue/timeline?hours=24", "timeline-day", LIVE)
    camera.at(f"/rl/jobs/{make_life(project, ada).pk}/events", "job-life", "#job-life")
    assert camera.problems == []


def test_a_job_that_starts_to_wait_appears_and_the_arrow_keys_reach_it(page, project, ada, fake):
    fake.set_capacity(2)
    running = gpu_job(project, ada, 2, "default", name="first", status=JobStatus.RUNNING)
    page.goto("/rl/queue/timeline")
    page.locator(LIVE).wait_for()
    bars = page.locator("svg.timeline a")
    expect(bars).to_have_count(1)
    gpu_job(project, ada, 2, "default", name="second")
    page.reload()
    expect(bars).to_have_count(2)
    label = bars.nth(1).get_attribute("aria-label") or ""
    assert label.startswith("second #") and "requests 2 x H100:8, its start is unknown" in label
    bars.first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == label
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/rl/jobs/{running.pk}")


def test_the_focus_stays_on_the_bar_of_a_job_when_another_one_comes_before_it(
    page, project, ada, fake
):
    fake.set_capacity(2)
    page.goto("/rl/queue/timeline")
    second = gpu_job(project, ada, 2, "default", name="second", status=JobStatus.RUNNING)
    page.reload()
    page.locator(LIVE).wait_for()
    bars = page.locator("svg.timeline a")
    bars.first.focus()
    first = gpu_job(project, ada, 2, "default", name="first", status=JobStatus.RUNNING)
    Attempt.objects.filter(job=first).update(created_at=timezone.now() - timedelta(hours=1))
    publish_queue_on_commit()
    expect(bars).to_have_count(2)
    expect(bars.first).to_have_attribute("href", f"/rl/jobs/{first.pk}")
    focused = page.evaluate("document.activeElement.getAttribute('href')")
    assert focused == f"/rl/jobs/{second.pk}"


def test_the_timeline_goes_on_without_a_request(page, project, ada, fake):
    job = gpu_job(project, ada, 2, "default", name="first", status=JobStatus.RUNNING)
    began = timezone.now() - timedelta(minutes=20)
    Attempt.objects.filter(job=job).update(created_at=began)
    page.clock.install()
    # The stream makes the page ask once when it begins.
    with page.expect_response(lambda each: "timeline/live" in each.url):
        page.goto("/rl/queue/timeline?hours=1")
        page.locator(LIVE).wait_for()
    bar = page.locator("svg.timeline rect.been")

    def edges() -> tuple[float, float]:
        box = bar.bounding_box()
        return box["x"], box["x"] + box["width"]

    picture = page.locator("svg.timeline").bounding_box()
    before, requests = edges(), []
    page.on("request", lambda each: requests.append(each.url))
    # After more than 40 seconds the stream would look broken.
    page.clock.run_for(30_000)
    after = edges()
    assert after[0] - before[0] == pytest.approx(-picture["width"] / 120, abs=2)
    assert after[1] == pytest.approx(before[1], abs=1)
    assert [url for url in requests if "timeline" in url] == []


def test_the_name_of_a_short_job_has_the_space_up_to_the_next_one(page, project, ada, fake):
    job = gpu_job(project, ada, 1, "default", name="evaluation", status=JobStatus.SUCCEEDED)
    began = timezone.now() - timedelta(minutes=60)
    Attempt.objects.filter(job=job).update(
        created_at=began, ended_at=began + timedelta(minutes=2), exit_code=0
    )
    page.goto("/rl/queue/timeline?hours=6")
    label = page.locator("svg.timeline a text")
    assert label.text_content().startswith(f"evaluation #{job.pk}")
    [width, space] = label.evaluate(
        "text => [text.getBBox().width, text.ownerSVGElement.width.baseVal.value]"
    )
    assert width < space
    assert page.locator("svg.timeline a title").text_content().startswith(f"evaluation #{job.pk}: ")


def test_the_parts_of_a_life_are_beside_its_events(page, project, ada):
    page.goto(f"/rl/jobs/{make_life(project, ada).pk}/events")
    parts = page.locator(".life-parts li")
    expect(parts).to_have_count(8)
    assert "Waiting" in parts.first.inner_text() and "1 h 40 m" in parts.first.inner_text()
    assert "Recovering" in parts.nth(4).inner_text() and "2 m" in parts.nth(4).inner_text()
