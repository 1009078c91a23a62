"""The overview of a project, and that of all projects, which is the first page."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from jobs.models import Cluster, Membership
from jobs.statuses import ClusterStatus, JobStatus, Role, StopReason
from jobs.web.overview.overview_page import PARTS, VISITS
from tests.factories import make_attempt, make_job, make_project, make_schedule
from tests.sample_frames import tell_of_use


@pytest.mark.feature("P7.1")
def test_it_shows_what_runs_waits_failed_costs_and_comes_next(viewer, project):
    running = make_job(
        project,
        name="ppo",
        status=JobStatus.RUNNING,
        started_at=timezone.now(),
        num_nodes=4,
        gpu_type="H100",
        gpu_count=32,
    )
    tell_of_use(make_attempt(running), [3, 2], idle_min=40)
    Cluster.objects.update(status=ClusterStatus.UP, usd_per_hour=Decimal("79.60"))
    make_job(project, name="sweep", wait_reason="CAPACITY", message="Needs 8 nodes at once.")
    make_job(project, name="eval", status=JobStatus.FAILED, stop_reason=StopReason.OOM)
    make_schedule(project, "nightly", next_at=timezone.now() + timedelta(hours=5))
    text = viewer.text("/rl")
    for words in (
        "Running 1",
        "ppo",
        "4 x H100:8",
        "2 %",
        "idle 40 min",
        "Waiting 1",
        "sweep",
        "Needs 8 nodes at once.",
        "Failed in 24 hours 1",
        "Out of memory",
        "32 held",
        "ppo $79.60/h 4 x H100:8 · job runs",
        "job runs, GPUs idle 40 min",
        "This month",
        "Budget none",
        "nightly",
        "in 5 h",
        "In the last 24 hours: 1 failed",
    ):
        assert words in text, words


def test_without_jobs_it_says_so(viewer, project):
    text = viewer.text("/rl")
    for words in ("No job runs.", "No job waits.", "No job failed.", "No machine is idle."):
        assert words in text, words


def test_it_is_the_first_page_of_who_has_one_project_and_all_projects_of_others(member, project):
    assert member.get("/")["Location"] == "/rl"
    other = make_project("alpha")
    Membership.objects.create(project=other, user=member.user, role=Role.VIEWER)
    make_job(other, name="theirs", status=JobStatus.RUNNING)
    make_job(project, name="ours", status=JobStatus.RUNNING)
    make_job(make_project("hidden"), name="hidden-job", status=JobStatus.RUNNING)
    text = member.text("/")
    assert "All projects" in text and "Running 2" in text
    assert "theirs" in text and "ours" in text and "hidden" not in text


def test_a_user_without_a_project_learns_what_to_do(loner):
    page = loner.text("/")
    assert "Ask an admin of your team's project" in page.replace("&#x27;", "'")
    assert "lou" in page


def test_a_project_left_in_the_meantime_is_forgotten(member, project):
    member.get("/rl/jobs")
    Membership.objects.filter(user=member.user).delete()
    assert "You are not a member of any project yet" in member.text("/")
    assert member.get("/rl").status_code == 404


def test_the_switcher_lists_my_projects_alone(member, stranger):
    page = member.text("/rl/jobs")
    assert "rl Member" in page
    assert "other" not in page


def test_it_says_what_changed_since_the_last_visit(viewer, project):
    def last_look_was(ago: timedelta) -> None:
        session = viewer.session
        _, before = session[VISITS]["rl"]
        session[VISITS] = {"rl": [(timezone.now() - ago).isoformat(), before]}
        session.save()

    make_job(project, status=JobStatus.SUCCEEDED, ended_at=timezone.now() - timedelta(hours=5))
    assert "In the last 24 hours: 1 succeeded" in viewer.text("/rl")
    last_look_was(timedelta(hours=3, seconds=9))
    assert "Since your last visit, 3 h ago : no job ended" in viewer.text("/rl")
    make_job(project, status=JobStatus.FAILED)
    # A reload soon afterwards is the same visit.
    last_look_was(timedelta(minutes=5))
    assert "Since your last visit, 3 h ago : 1 failed" in viewer.text("/rl")


def test_its_live_parts_are_those_of_the_page(viewer, member, project):
    make_job(project, status=JobStatus.RUNNING, started_at=timezone.now())
    Membership.objects.create(project=make_project("b"), user=member.user, role=Role.VIEWER)
    for page, live in (("/rl", "/rl/overview/live"), ("/", "/settings/overview/live")):
        whole = member.get(page).content.decode()
        ids = re.findall(r'<section[^>]*?id="([^"]+)"', member.get(live).content.decode())
        assert ids == [f"overview-{name}" for name in PARTS]
        for each in ids:
            assert f'id="{each}"' in whole
