"""The timeline of the queue: in REST and on its page."""

from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.backends.fake.backend import FakeBackend
from jobs.models import Attempt, Cluster, Job
from jobs.permissions import Actor
from jobs.readers.timeline import timeline
from jobs.readers.wait_explanation import explain_wait
from jobs.statuses import JobStatus, Role
from tests.factories import make_attempt, make_job, make_member, make_project
from tests.integration.web.conftest import browser_of

pytestmark = pytest.mark.feature("P5.5")
HOUR = timedelta(hours=1)


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    backend = FakeBackend(tmp_path / "fake")
    backend.set_capacity(4)
    return backend


@pytest.fixture
def mia(project):
    return browser_of(make_member(project, Role.MEMBER, username="mia"))


def run(job: Job, minutes: int, ended: int | None = None) -> Attempt:
    """Let the job have had machines for so many minutes, and up to so many minutes ago."""
    attempt = make_attempt(job)
    now = timezone.now()
    attempt.created_at = attempt.run_started_at = now - timedelta(minutes=minutes)
    attempt.ended_at = None if ended is None else now - timedelta(minutes=ended)
    attempt.save()
    if ended is not None:
        Cluster.objects.filter(pk=attempt.cluster_id).update(status="GONE", gone_at=now)
    return attempt


def test_starts_and_ends_are_those_that_the_plan_and_the_page_of_a_job_have(project, mia, fake):
    actor = Actor(mia.user)
    bounded = make_job(project, status=JobStatus.RUNNING, num_nodes=4, duration_s=7200)
    run(bounded, 30)
    ended = make_job(project, status=JobStatus.FAILED)
    run(ended, 50, 20)
    first = make_job(project, num_nodes=4, duration_s=3600)
    second = make_job(project, num_nodes=4)
    third = make_job(project, num_nodes=2)
    found = timeline(actor, 24 * HOUR)
    [lane] = found.lanes
    rows = {each.job_id: each for each in lane.jobs}
    assert [(row.kind, row.end_basis) for row in lane.jobs[:2]] == [
        ("ended", "ended"),
        ("running", "bounds"),
    ]
    assert rows[bounded.pk].end > timezone.now() + HOUR
    for job in (first, second, third):
        answer = explain_wait(actor, job)
        row = rows[job.pk]
        assert row.begin_basis == answer.basis
        if job is third:
            assert row.begin is answer.expected_at is None
        else:
            assert abs(row.begin - answer.expected_at) < timedelta(seconds=5)
    assert (rows[first.pk].begin_basis, rows[second.pk].begin_basis) == ("bounds", "past_runs")
    assert rows[first.pk].end - rows[first.pk].begin == HOUR
    assert rows[third.pk].end is None and rows[third.pk].reason


def test_jobs_of_other_projects_are_shown_without_name_number_or_reason(project, mia, fake):
    others = make_project("secret-lab")
    run(make_job(others, name="secret", status=JobStatus.RUNNING, num_nodes=4), 10)
    make_job(others, name="secret", num_nodes=3)
    rows = timeline(Actor(mia.user), HOUR).lanes[0].jobs
    assert [(row.kind, row.job_id, row.name, row.project, row.reason) for row in rows] == [
        ("running", None, "", "", ""),
        ("waiting", None, "", "", ""),
    ]
    page = mia.get("/rl/queue/timeline").content.decode()
    assert "A job of another project: Running on 4 nodes, its end is unknown" in page
    assert "secret" not in page


def test_what_ended_before_the_time_that_is_shown_is_left_out(project, mia, fake):
    run(make_job(project, name="early", status=JobStatus.SUCCEEDED), 300, 200)
    run(make_job(project, name="late", status=JobStatus.SUCCEEDED), 300, 20)
    hour, day = (mia.get(f"/rl/queue/timeline?hours={each}").content.decode() for each in (1, 24))
    assert "late #" in hour and "early #" not in hour
    assert "late #" in day and "early #" in day
    assert "Succeeded, had 1 node for 5 h, 20 min ago" in day


def make_many(project, user, size: int) -> None:
    """Create jobs that have ended, each with its attempt, and a tenth as many queued ones."""
    now = timezone.now()
    first = make_job(project, submitted_by=user, status=JobStatus.SUCCEEDED)
    columns = {field.attname: getattr(first, field.attname) for field in Job._meta.concrete_fields}
    jobs = Job.objects.bulk_create(
        Job(**{**columns, "id": None, "name": f"job-{place % 40}"}) for place in range(size)
    )
    Attempt.objects.bulk_create(
        Attempt(
            job=job,
            number=1,
            token_digest=f"{job.pk:064d}",
            created_at=now - timedelta(seconds=10 * place + 60 + place % 7 * 60),
            ended_at=now - timedelta(seconds=10 * place + 30),
            exit_code=0,
        )
        for place, job in enumerate(jobs)
    )
    columns |= {"id": None, "status": JobStatus.QUEUED, "ended_at": None, "num_nodes": 3}
    Job.objects.bulk_create(Job(**columns) for _ in range(size // 10))


@pytest.mark.slow
def test_a_thousand_jobs_take_as_many_queries_as_one(
    project, mia, fake, django_assert_max_num_queries
):
    run(make_job(project, status=JobStatus.RUNNING, num_nodes=2, duration_s=7200), 10)
    make_many(project, mia.user, 1000)
    with django_assert_max_num_queries(45):
        began_s = time.thread_time()
        page = mia.get("/rl/queue/timeline?hours=6").content.decode()
        taken_s = time.thread_time() - began_s
    assert page.count('class="bar-of"') > 1000 and "more jobs." in page
    assert taken_s < 1.0


def test_the_page_says_that_older_attempts_are_left_out(project, mia, fake, monkeypatch):
    monkeypatch.setattr("jobs.readers.timeline.MOST_ATTEMPTS", 2)
    for minutes in (30, 20, 10):
        run(make_job(project, status=JobStatus.RUNNING), minutes)
    page = mia.get("/rl/queue/timeline").content.decode()
    assert "Older attempts are left out." in page


def test_a_running_job_without_a_limit_fades_out_and_does_not_look_like_a_waiting_one(
    project, mia, fake
):
    fake.set_capacity(1)
    run(make_job(project, name="train", status=JobStatus.RUNNING), 30)
    make_job(project, name="later")
    running, waiting = bars_of(mia.get("/rl/queue/timeline").content.decode())
    assert running == ["been s-running", "open s-running"]
    assert waiting == ["waits"]


def bars_of(page: str) -> list[list[str]]:
    """Return the classes of the parts of each bar."""
    bars = page.split('class="bar-of')[1:]
    return [re.findall(r'<rect class="([^"]+)"', bar.split("</a>")[0]) for bar in bars]


def test_the_legend_names_the_look_of_every_bar_and_no_other(project, mia, fake):
    def names(*statuses: str) -> list[str]:
        Job.objects.all().delete()
        for status in statuses:
            is_over = JobStatus(status).is_final
            run(make_job(project, status=JobStatus(status)), 30, 5 if is_over else None)
        page = mia.get("/rl/queue/timeline").content.decode()
        key = page.split('class="timeline-key')[1].split("</p>")[0]
        drawn = {look for bar in bars_of(page) for look in bar}
        named = set(re.findall(r'<rect class="([^"]+)"', key))
        assert named == drawn
        return re.findall(r"</svg>\s*([^<]+)</span>", key)

    assert names("SUCCEEDED", "FAILED") == ["Succeeded", "Failed"]
    assert names("RUNNING") == ["Starting or running", "No known end"]
    assert names("CANCELLED") == ["Cancelled"]


def test_the_marks_of_an_axis_have_one_unit(project, mia, fake):
    run(make_job(project, status=JobStatus.RUNNING), 30)

    def units(hours: int) -> set[str]:
        page = mia.get(f"/rl/queue/timeline?hours={hours}").content.decode()
        return set(re.findall(r'y="14">[−+]\d+ (\w+)<', page))

    assert [units(hours) for hours in (1, 6, 24, 168)] == [{"min"}, {"h"}, {"h"}, {"d"}]
