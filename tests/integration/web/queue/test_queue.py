"""The page of the queue: machines, queues, order, quotas and shares; others stay nameless."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from jobs.backends.fake.backend import FakeBackend
from jobs.errors import BackendUnavailableError
from jobs.ground import clock
from jobs.models import Cluster, Job, Pool, Project, Queue, Quota
from jobs.permissions import Actor
from jobs.readers import queue_state
from jobs.readers.wait_explanation import explain_wait as why
from jobs.reconcilers import prices
from jobs.statuses import JobStatus
from jobs.web.base.terms import meanings
from tests.factories import make_attempt, make_job, make_member, make_project, make_spec, make_user
from tests.integration.web.conftest import browser_of

pytestmark = [pytest.mark.usefixtures("fake"), pytest.mark.feature("P5.1")]


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    backend = FakeBackend(tmp_path)
    backend.set_capacity(4)
    return backend


@pytest.fixture
def big(db) -> Queue:
    pool = Pool.objects.create(name="a100", backend_name="fake", caps={"nodes": 4, "gpus:A100": 32})
    return Queue.objects.create(name="train", rank=3, pool=pool)


def job_of(project: Project, nodes: int = 1, **fields: Any) -> Job:
    spec = make_spec(num_nodes=nodes, resources={"accelerators": "A100:8"})
    fields = {"queue_name": "train", **fields}
    return make_job(project, num_nodes=nodes, spec=spec, **fields)


def test_it_shows_machines_queues_turns_quotas_and_shares(member, project, big):
    Quota.objects.create(project=project, caps={"gpus:A100": 24})
    Quota.objects.create(project=project, per_person=True, caps={"jobs": 2})
    ana = make_member(project, username="ana")
    make_attempt(job_of(project, 2, status=JobStatus.RUNNING, submitted_by=ana))
    waits = job_of(project, 2, name="big-one", submitted_by=ana)
    text = member.text("/rl/queue")
    machines = member.text("/rl/machines")
    assert "Pool a100 of Fake" in machines
    assert "2 of 4 nodes" in machines and "16 of 32 GPUs (A100)" in machines
    assert f"big-one #{waits.pk} queue train" in text
    assert "Expected start" in text
    assert "project rl may have 24 GPUs (A100) at once, and has 16" in text
    assert "16 of 24 GPUs (A100)" in text
    assert "Each person in rl" in text and "at most 2 running jobs" in text
    assert "ana 1 of 2 running jobs" in text
    assert "100 %" in text


def test_a_queued_job_has_the_expected_start_of_its_own_page(member, project, big):
    limited = make_spec(num_nodes=4, portal={"max_duration": "1h", "queue": "train"})
    holder = make_job(
        project, num_nodes=4, spec=limited, queue_name="train", status=JobStatus.RUNNING
    )
    make_attempt(holder, run_started_at=clock.now())
    waits = job_of(project, 2, name="big-one")
    (turn,) = queue_state.QueueState(Actor(member.user)).waiting()
    forecast = why(Actor(member.user), waits)
    assert (turn.job_id, turn.basis) == (waits.pk, "bounds")
    assert turn.expected_at is not None and forecast.expected_at is not None
    assert abs(turn.expected_at - forecast.expected_at) < timedelta(seconds=5)
    assert re.search(r"big-one .* in \d+ min at the latest", member.text("/rl/queue"))


def test_money_is_shown_as_money_and_only_to_its_project(stranger, member, project, big):
    Quota.objects.create(project=project, caps={"usd_per_hour": 40})
    make_attempt(job_of(project, 2, status=JobStatus.RUNNING))
    Cluster.objects.update(usd_per_hour="12.80")
    job_of(project, 4)
    prices.step()
    text = member.text("/rl/queue")
    assert "$12.80 of $40.00 per hour" in text
    assert "$" not in stranger.text("/other/queue")


@pytest.mark.feature("P5.4")
def test_it_says_where_jobs_are_stopped_for_others(member, project, big):
    before = member.text("/rl/queue")
    assert "take" not in before and "preemptible" not in before
    Pool.objects.update(reclaim=True, preempts_by_rank=True)
    Queue.objects.update(preemptible=True)
    Quota.objects.create(project=project, caps={"nodes": 8}, nominal={"nodes": 4})
    text = member.text("/rl/queue")
    machines = member.text("/rl/machines")
    assert "Projects reclaim their nominal share by preemption." in machines
    assert "Queues of a higher rank preempt jobs of a lower rank." in machines
    assert "train preemptible" in text
    assert "nominal share 4, limit 8" in text
    job = job_of(project)
    assert "train, priority 50 preemptible" in member.text(f"/rl/jobs/{job.pk}")


@pytest.mark.feature("P8.1")
def test_a_job_of_another_project_has_a_place_and_no_name(stranger, member, project, big):
    Quota.objects.create(project=project, caps={"jobs": 7})
    make_attempt(job_of(project, 4, status=JobStatus.RUNNING))
    hidden = job_of(project, 4, name="secret-job")
    for path in ("/other/queue", "/other/queue/live"):
        html = stranger.get(path).content.decode()
        assert "A job of another project" in html and "1 other project" in html
        for word in ("secret-job", f"#{hidden.pk}", ">rl<", "7 running jobs"):
            assert word not in html
        assert hidden.submitted_by.get_username() not in html
    assert "secret-job" in member.text("/rl/queue")


def test_a_member_of_several_projects_sees_all_of_theirs(member, project, big):
    other = make_project("evals")
    other.memberships.create(user=member.user, role="viewer")
    for each in (project, other):
        job_of(each, 9, name=f"of-{each.slug}")
    text = member.text("/rl/queue")
    assert "of-rl" in text and "of-evals" in text


def test_each_place_has_one_list_although_pools_that_share_machines_take_turns(
    member, project, big
):
    make_attempt(job_of(project, 4, status=JobStatus.RUNNING))
    for _ in range(3):
        job_of(project, 2)
        job_of(project, 2, queue_name="default")
    Queue.objects.update(rank=0)
    text = member.text("/rl/queue")
    assert (text.count("In pool a100"), text.count("On Fake")) == (1, 1)


def test_the_page_says_how_many_wait_for_something_else_than_machines(member, project, big):
    assert " more wait" not in member.text("/rl/queue")
    first = job_of(project, 9)
    after = job_of(project, 9)
    after.dependencies.create(needs=first, needs_number=first.pk, needs_name=first.name)
    assert "1 more job waits for a dependency" in member.text("/rl/queue")
    job_of(project, 9, held=True)
    text = member.text("/rl/queue")
    assert "Waiting 1 " in text
    assert "2 more jobs wait for dependencies, their array or their next attempt" in text


def test_the_page_shows_the_whole_order_and_the_usage_of_shares(member, project, big):
    make_attempt(job_of(project, 2, status=JobStatus.RUNNING))
    text = member.text("/rl/queue")
    for part in ("rank", "effective usage", "patience", "Priority", "owner", "Age"):
        text = text[text.index(part) :]
    assert "what running jobs may still use, up to one hour each" in text


def test_the_page_explains_its_terms_and_counts_usage_in_plain_hours(member, project, big):
    make_attempt(job_of(project, 2, status=JobStatus.RUNNING))
    html = member.get("/rl/queue").content.decode()
    for term in ("queue", "usage", "patience"):
        assert f'id="term-{term}"' in html
    assert "normalized" not in html.replace(meanings()["usage"], "")
    assert re.search(r"[\d.]+ h, \d+ %", html)
    assert "Used + reserved" in html


def test_it_says_how_long_each_waits(member, project, big):
    job_of(project, 9)
    Job.objects.update(created_at=clock.now() - timedelta(seconds=48))
    html = member.get("/rl/queue").content.decode()
    assert re.search(r'data-word="waits"><time [^>]*data-since>(48|49|50) s</time>', html)


def test_a_long_queue_comes_in_pages(member, project, big, monkeypatch):
    monkeypatch.setattr("jobs.web.queue.queue_page.PAGE", 2)
    jobs = [job_of(project, 9, name=f"job-{number}") for number in range(5)]
    assert len(jobs) == 5
    first, last = member.text("/rl/queue"), member.text("/rl/queue", page=3)
    assert "Page 1 of 3" in first and "job-0" in first and "job-2" not in first
    assert "Page 3 of 3" in last and "job-4" in last and "job-3" not in last
    for odd in ("99", "0", "x", "-1", "9" * 30):
        assert "of 3" in member.text("/rl/queue", page=odd)


def test_without_anything_each_part_says_so(viewer):
    text = viewer.text("/rl/queue")
    assert "The queue is empty: every job that can start has its machines." in text
    assert "No quotas: your projects can use all free capacity." in text
    assert "No recent usage" in text
    assert "mportal admin" not in text


def test_administrators_learn_how_to_set_them(project):
    root = browser_of(make_user(is_superuser=True))
    assert "Set a quota" in root.text("/rl/queue")


def test_a_backend_that_is_away_is_reported_and_the_page_is_there(member, monkeypatch, fake):
    def away(_: object) -> int:
        raise BackendUnavailableError("The cloud is away.")

    monkeypatch.setattr(FakeBackend, "capacity_nodes", away)
    assert member.get("/rl/queue").status_code == 200
    assert "The cloud is away." in member.text("/rl/machines")


@pytest.mark.parametrize(("limit", "least"), [("LONG_QUEUE", 1), ("LONG_PLAN_S", 0.0)])
def test_of_a_plan_that_takes_long_all_who_look_for_a_while_have_the_same(
    limit, least, member, project, monkeypatch
):
    monkeypatch.setattr(f"jobs.queueing.current_pass.{limit}", least)
    monkeypatch.setattr("jobs.queueing.current_pass._last", None)
    for _ in range(2):
        job_of(project, 9, queue_name="default")
    assert queue_state.QueueState(Actor(member.user)).number_waiting == 2
    job_of(project, 9, queue_name="default")
    assert queue_state.QueueState(Actor(member.user)).number_waiting == 2
