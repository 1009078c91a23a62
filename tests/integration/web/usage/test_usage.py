"""/{project}/usage: the spending of each user, and the budget beside it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.clusters.settle import settle
from jobs.models import Attempt, Budget, Cluster
from jobs.permissions import Actor
from jobs.readers.settled_usage import SettledUsage
from jobs.readers.usage import usages
from jobs.spending import there_between
from jobs.statuses import ClusterStatus, JobStatus, UsageBy
from tests.factories import make_attempt, make_job, make_user
from tests.integration.web.conftest import browser_of, text_of

pytestmark = pytest.mark.feature("P5.6")
PATH, BUDGET = "/rl/usage", "/rl/settings/budget"
NOON = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
FORM = {"usd": "20", "on_spent": "hold", "warn_at": "50, 80 %, 100"}


@pytest.fixture(autouse=True)
def noon(time_machine):
    time_machine.move_to(NOON, tick=False)


@pytest.fixture
def root(project):
    return browser_of(make_user("root", is_superuser=True))


def spend(project, usd, name="ppo", hours=2, end=NOON):
    job = make_job(project, name=name, status=JobStatus.SUCCEEDED)
    attempt = make_attempt(job)
    begin = end - timedelta(hours=hours)
    Attempt.objects.filter(pk=attempt.pk).update(created_at=begin, ended_at=end)
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.GONE, created_at=begin, gone_at=end, billed_at=end, usd=Decimal(usd)
    )
    settle([attempt.cluster_id or 0])
    return job


def divide_all(project, begin, end, *, most_jobs):
    """Leave all clusters to the division in Python, the model of what the database adds up."""
    there = there_between(begin, end).filter(project=project)
    return SettledUsage(to_divide=list(there.values_list("pk", flat=True)))


def test_it_shows_who_has_spent_what_on_which_job(viewer, project):
    job = spend(project, "12.50")
    page = viewer.text(PATH)
    assert "$12.50" in page and job.submitted_by.username in page
    assert f"/rl/jobs/{job.pk}" in viewer.get(PATH).content.decode()
    assert "2026-11-24: $12.50, 2.0 node hours" in viewer.get(PATH).content.decode()


def test_the_machines_of_a_month_are_read_once_a_view(viewer, project):
    spend(project, "12.50")
    running = make_attempt(make_job(project, name="still-running"))
    Cluster.objects.filter(pk=running.cluster_id).update(created_at=NOON - timedelta(hours=1))
    viewer.get(PATH)
    with CaptureQueriesContext(connection) as requested:
        viewer.get(PATH)
    said = [each["sql"] for each in requested]
    # Those that the database adds up, and those whose cost is divided.
    assert len([sql for sql in said if "jobs_attempt" in sql]) == 2
    assert len([sql for sql in said if "jobs_settleduse" in sql]) == 1
    # The budget's sum reads clusters too, and not what they are.
    assert len([sql for sql in said if "jobs_cluster" in sql and "num_nodes" in sql]) == 1


def test_costs_that_need_no_division_are_what_a_division_gives(viewer, project, monkeypatch):
    spend(project, "12.50")
    spend(project, "0.333333", name="short", hours=0.1)
    spend(project, "7", name="over-midnight", hours=14)
    spend(project, "2", name="of-last-month", hours=1, end=NOON - timedelta(days=40))
    still = make_attempt(make_job(project, name="still-running"))
    Cluster.objects.filter(pk=still.cluster_id).update(
        created_at=NOON - timedelta(hours=1), usd_per_hour=Decimal(3)
    )
    shared = spend(project, "5", name="shared")
    make_attempt(shared, number=2, cluster=shared.attempts.get().cluster)
    bys = [UsageBy.DAY, UsageBy.USER, UsageBy.JOB]
    actor, first, last = (
        Actor(make_user(is_superuser=True)),
        NOON.date().replace(day=1),
        NOON.date(),
    )
    found = usages(actor, project, first, last, bys)
    monkeypatch.setattr("jobs.readers.usage.settled_usage", divide_all)
    assert usages(actor, project, first, last, bys) == found


def test_a_project_that_has_used_nothing_says_so(viewer, project):
    page = viewer.text(PATH)
    assert "No usage in this month." in page
    assert "This project has no budget." in page
    assert "Set a budget" not in page


def test_where_nothing_has_a_price_hours_are_compared(viewer, project):
    spend(project, "0", hours=3)
    spend(project, "0", name="small", hours=1)
    page = viewer.text(PATH)
    assert "4.0 node hours" in page and "75 %" in page


def test_the_bars_have_an_axis_with_a_unit_and_values(viewer, project):
    spend(project, "0", hours=3)
    page = viewer.text(PATH)
    assert "Node hours per day 4 2 0 " in page
    assert "highest on 2026-11-24: 3.0 node hours" in page
    spend(project, "12.50")
    assert "US$ per day $20 $10 $0 " in viewer.text(PATH)


def test_little_is_not_nothing(viewer, project):
    spend(project, "0", hours=0.02)
    page = viewer.text(PATH)
    assert "0.020 node hours" in page and "0.0 " not in page


def test_a_table_that_does_not_show_all_says_so_and_where_all_are(viewer, project):
    for _ in range(15):
        spend(project, "1")
    assert "that used most" not in viewer.text(PATH)
    spend(project, "1", end=NOON - timedelta(days=1))
    page = viewer.text(PATH)
    assert (
        "15 with the highest usage, of 16. All of them: mportal usage --project rl --by job "
        in page
    )
    for _ in range(16):
        spend(project, "1", end=NOON - timedelta(days=40))
    said = viewer.text(f"{PATH}?month=2026-10")
    assert "--by job --from 2026-10-01 --to 2026-10-31 " in said


def test_other_months_are_a_step_away(viewer, project):
    spend(project, "7.77", end=datetime(2026, 10, 5, tzinfo=timezone.utc))
    assert "$7.77" not in viewer.text(PATH)
    october = viewer.text(f"{PATH}?month=2026-10")
    assert "$7.77" in october and "October 2026" in october
    assert "Budget of" not in october


@pytest.mark.parametrize("month", ["2026-13", "x", "9999-12", "0001-01", "", "2026-11-24"])
def test_a_month_that_is_none_or_is_to_come_shows_something(viewer, project, month):
    assert viewer.get(f"{PATH}?month={month}").status_code == 200


def test_an_administrator_of_the_installation_sets_a_budget(root, viewer, project):
    assert "Set a budget" in root.text(PATH)
    assert root.post(BUDGET, FORM)["Location"] == BUDGET
    budget = Budget.objects.get()
    assert budget.usd == 20
    assert (budget.on_spent, budget.warn_at) == ("hold", [50, 80, 100])
    spend(project, "25")
    page = viewer.text(PATH)
    assert "$25.00 of $20.00" in page and "125 %" in page
    assert "Its jobs start again on 1 December 2026" in page
    assert "Change the budget" in root.text(PATH)


def test_an_empty_amount_takes_the_budget_away(root, project):
    root.post(BUDGET, FORM)
    root.post(BUDGET, {**FORM, "usd": ""})
    assert not Budget.objects.exists()


@pytest.mark.parametrize(
    "wrong", [{"usd": "-1"}, {"usd": "much"}, {"warn_at": "half"}, {"warn_at": "0"}]
)
def test_what_makes_no_sense_is_reported_at_its_field(root, project, wrong):
    page = root.post(BUDGET, {**FORM, **wrong})
    assert page.status_code == 200
    assert 'class="error"' in page.content.decode()
    assert text_of(page)
    assert not Budget.objects.exists()


@pytest.mark.feature("P8.1")
def test_no_other_user_sets_a_budget(viewer, admin, project):
    for browser in (viewer, admin):
        assert browser.post(BUDGET, FORM).status_code == 403
    assert not Budget.objects.exists()
