"""A project's monthly budget: reported once, holds the queue, stops jobs, resets by itself."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.db import connection

from jobs.actions.projects.set_budget import remove_budget, set_budget
from jobs.backends.fake.backend import FakePlan
from jobs.models import Budget, BudgetNotice, Cluster, Job, Project
from jobs.permissions import Actor
from jobs.policies.budgets import Month
from jobs.reconcilers import autostop, billing, budgets, queue
from jobs.spending import budget_blocks, spent_in
from jobs.statuses import ClusterStatus, JobStatus, OnSpent, StopReason, WaitReason
from tests.factories import make_job, make_project, make_spec, make_user
from tests.integration.reconcilers.steps import push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.6")]
NOON = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def noon(time_machine, monkeypatch):
    """Set the clock to noon in November; no hint is sent to the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    time_machine.move_to(NOON, tick=False)


def admin() -> Actor:
    return Actor(make_user(is_superuser=True))


def give(project: Project, usd: str, on_spent: OnSpent = OnSpent.HOLD, at=(50, 80, 100)) -> None:
    set_budget(admin(), project, Decimal(usd), on_spent, at)


def spend(project: Project, usd: str, **fields) -> Cluster:
    """Create a terminated cluster of one hour, with its last bill."""
    count = Cluster.objects.count()
    values = {
        "status": ClusterStatus.GONE,
        "created_at": NOON - HOUR,
        "gone_at": NOON,
        "billed_at": NOON + timedelta(minutes=1),
    }
    return Cluster.objects.create(
        project=project,
        name=f"mpspent-{count}",
        backend_name="fake",
        num_nodes=1,
        usd=Decimal(usd),
        **{**values, **fields},
    )


def look() -> None:
    for project_id in budgets.due():
        budgets.step(project_id)


def reported(project: Project) -> list[int]:
    return sorted(BudgetNotice.objects.filter(project=project).values_list("threshold", flat=True))


def spent(project: Project, now: datetime = NOON) -> Decimal:
    return spent_in(Month.of(now), now).get(project.pk, Decimal(0))


@pytest.fixture
def running_job(fake, tick, project):
    """Start a job that does not end by itself."""

    def begin(**portal) -> Job:
        fake.set_plan(FakePlan())
        job = make_job(project, backend_name="fake", spec=make_spec(portal=portal))
        tick()
        push(fake, job)
        tick()
        assert status_of(job) == JobStatus.RUNNING
        return job

    return begin


def test_each_threshold_is_reported_once_with_what_was_spent(project):
    give(project, "10")
    look()
    assert reported(project) == []
    spend(project, "5.25")
    look()
    look()
    assert reported(project) == [50]
    notice = BudgetNotice.objects.get()
    assert (notice.usd, notice.budget_usd) == (Decimal("5.25"), Decimal(10))
    spend(project, "7")
    look()
    assert reported(project) == [50, 80, 100]


def test_a_larger_amount_reports_its_thresholds_again(project):
    give(project, "10")
    spend(project, "9")
    look()
    assert reported(project) == [50, 80]
    give(project, "15")
    assert reported(project) == [50]
    spend(project, "4")
    look()
    assert reported(project) == [50, 80]


def test_a_budget_that_warns_holds_and_stops_nothing(project, running_job, tick):
    job = running_job()
    give(project, "10", OnSpent.WARN)
    spend(project, "20")
    look()
    assert reported(project) == [50, 80, 100]
    assert status_of(job) == JobStatus.RUNNING
    waiting = make_job(project)
    tick()
    assert status_of(waiting) != JobStatus.QUEUED


def test_a_budget_that_holds_lets_nothing_start_and_what_runs_go_on(project, running_job, tick):
    job = running_job()
    give(project, "10", OnSpent.HOLD)
    spend(project, "12.34")
    waiting = make_job(project)
    look()
    tick()
    assert status_of(job) == JobStatus.RUNNING
    assert status_of(waiting) == JobStatus.QUEUED
    assert waiting.wait_reason == WaitReason.BUDGET
    assert waiting.message == (
        "Project rl has used 123 % of its $10.00 for November 2026. Its jobs start again on "
        "1 December 2026, 00:00 UTC, or when an administrator raises the amount."
    )


def test_jobs_of_other_projects_pass_those_that_a_budget_holds(project, fake, tick):
    fake.set_capacity(1)
    give(project, "10")
    spend(project, "10")
    held = make_job(project, priority=100)
    other = make_job(make_project("other"), priority=0)
    tick()
    assert status_of(held) == JobStatus.QUEUED
    assert status_of(other) != JobStatus.QUEUED


def test_what_a_budget_held_starts_by_itself_when_the_month_turns(
    project, fake, tick, time_machine
):
    give(project, "10")
    spend(project, "10")
    job = make_job(project)
    tick()
    assert status_of(job) == JobStatus.QUEUED
    time_machine.move_to(datetime(2026, 12, 1, tzinfo=timezone.utc), tick=False)
    tick()
    assert status_of(job) != JobStatus.QUEUED
    assert job.wait_reason == ""


@pytest.mark.parametrize("change", ["raised", "removed", "only warns"])
def test_what_a_budget_held_starts_by_itself_when_the_budget_is_no_more(
    project, fake, tick, change
):
    give(project, "10")
    spend(project, "10")
    job = make_job(project)
    tick()
    assert status_of(job) == JobStatus.QUEUED
    if change == "raised":
        give(project, "11")
    elif change == "removed":
        remove_budget(admin(), project)
    else:
        give(project, "10", OnSpent.WARN)
    tick()
    assert status_of(job) != JobStatus.QUEUED


def test_a_budget_that_stops_ends_what_runs_with_its_grace(project, running_job, tick):
    job = running_job()
    give(project, "10", OnSpent.STOP)
    spend(project, "10.40")
    look()
    assert status_of(job) == JobStatus.STOPPING
    assert job.stop_reason == StopReason.BUDGET
    assert job.message == "Project rl has used 104 % of its $10.00 for November 2026."
    for _ in range(3):
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert (job.stop_reason, job.attempts.get().stop_reason) == ("BUDGET", "BUDGET")


def test_a_budget_that_stops_also_ends_machines_that_wait_for_a_job(
    project, submit_kept, run_through
):
    run_through(submit_kept())
    cluster = Cluster.objects.waiting().get()
    give(project, "10", OnSpent.STOP)
    look()
    assert Cluster.objects.waiting().exists()
    spend(project, "10")
    look()
    cluster.refresh_from_db()
    assert cluster.release_requested_at is not None


def test_machines_that_are_switched_off_are_left_to_their_owner(project):
    fields = {"idle_since": NOON - HOUR, "stopped_at": NOON, "gone_at": None}
    off = spend(project, "10", status=ClusterStatus.STOPPED, **fields)
    give(project, "10", OnSpent.STOP)
    look()
    off.refresh_from_db()
    assert off.release_requested_at is None


def test_a_cluster_of_two_months_is_divided_by_time(project):
    end = datetime(2026, 11, 1, 18, tzinfo=timezone.utc)
    begin = end - timedelta(hours=24)
    spend(project, "24", created_at=begin, gone_at=end, billed_at=end)
    assert spent(project) == 18
    assert spent_in(Month.of(begin), NOON) == {project.pk: 6}


def test_idle_time_of_a_cluster_that_is_kept_counts(
    project, submit_kept, run_through, fake, time_machine
):
    fake.set_price("3.60")
    run_through(submit_kept(idle={"minutes": 600}))
    time_machine.move_to(NOON + HOUR, tick=False)
    billing.step()
    assert autostop.due()
    assert round(spent(project, NOON + HOUR), 2) == Decimal("3.60")
    # Until the next bill by the price of an hour.
    assert round(spent(project, NOON + 2 * HOUR), 2) == Decimal("7.20")


def test_many_clusters_are_added_up_as_one_by_one(project):
    other = make_project("other")
    for number in range(8):
        spend(other if number % 2 else project, f"{number}.5")
    live = {"status": ClusterStatus.UP, "gone_at": None, "billed_at": NOON - HOUR / 2}
    spend(project, "1", usd_per_hour=Decimal(2), **live)
    assert (spent(project), spent(other)) == (Decimal(16), Decimal(18))


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_report_a_threshold_once(project):
    give(project, "10")
    spend(project, "10")
    start, errors = threading.Barrier(4), []

    def run() -> None:
        try:
            start.wait(10)
            budgets.step(project.pk)
        except Exception as error:  # noqa: BLE001 - reported by the test
            errors.append(error)
        finally:
            connection.close()

    for _ in range(5):
        BudgetNotice.objects.all().delete()
        workers = [threading.Thread(target=run) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(30)
        assert errors == []
        assert reported(project) == [50, 80, 100]


def test_without_a_budget_the_queue_asks_nothing_more(project, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert budget_blocks(NOON) == {}
    assert not Budget.objects.exists()
    make_job(project)
    queue.load_snapshot()
