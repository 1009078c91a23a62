"""Budgets and usage over REST: every project member sees them, administrators set them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from jobs.models import Attempt, Cluster, Membership
from jobs.statuses import ClusterStatus, JobStatus, Role
from tests.factories import make_attempt, make_job, make_spec, make_user
from tests.integration.api.conftest import assert_problem, caller_for

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.6")]
BUDGET, USAGE = "/projects/rl/budget", "/projects/rl/usage"
MIDNIGHT = datetime(2026, 11, 24, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def noon(time_machine):
    time_machine.move_to(MIDNIGHT + 12 * HOUR, tick=False)


def spend(project, begin, hours, usd, user=None, kept=None, **fields):
    """Create a cluster of that cost, with one attempt on it to its end, or for `kept` hours."""
    end = begin + hours * HOUR
    job = make_job(
        project,
        status=JobStatus.SUCCEEDED,
        **({"submitted_by": user} if user else {}),
        **fields,
    )
    attempt = make_attempt(job)
    Attempt.objects.filter(pk=attempt.pk).update(
        created_at=begin, ended_at=end if kept is None else begin + kept * HOUR
    )
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.GONE,
        created_at=begin,
        gone_at=end,
        billed_at=end,
        usd=Decimal(usd),
        is_reusable=kept is not None,
    )
    return job


def test_a_project_without_a_budget_shows_what_it_has_spent(viewer, project):
    spend(project, MIDNIGHT, 2, "3.5")
    body = viewer.get(BUDGET).json()
    assert (body["usd"], body["spent_usd"], body["percent"]) == (None, "3.500000", None)
    assert (body["month"], body["holds"], body["may_set"]) == ("2026-11", False, False)


def test_an_administrator_sets_a_budget_and_every_member_sees_it(
    root, viewer, project, no_broker, django_capture_on_commit_callbacks
):
    spend(project, MIDNIGHT, 2, "8")
    with django_capture_on_commit_callbacks(execute=True):
        answer = root.send("PUT", BUDGET, {"usd": "10", "on_spent": "stop", "warn_at": [90, 75]})
    assert answer.status_code == 200
    assert {args[0] for args in no_broker} == {"budgets", "queue"}
    body = viewer.get(BUDGET).json()
    assert (body["usd"], body["on_spent"], body["warn_at"]) == ("10.000000", "stop", [75, 90])
    assert (body["percent"], body["holds"]) == (80, False)
    assert body["sentence"] == "Project rl has used 80 % of its $10.00 for November 2026."
    assert body["set_by"] == root.user.username
    assert root.get(BUDGET).json()["may_set"] is True


def test_what_is_not_named_of_a_budget_stays_as_it_is(root, project):
    terms = {"usd": "250", "on_spent": "warn", "warn_at": [75, 90]}
    assert root.send("PUT", BUDGET, terms).status_code == 200
    body = root.send("PUT", BUDGET, {"usd": "300"}).json()
    assert (body["usd"], body["on_spent"], body["warn_at"]) == ("300.000000", "warn", [75, 90])


def test_a_budget_that_is_used_up_says_when_jobs_start_again(root, project):
    spend(project, MIDNIGHT, 2, "8")
    body = root.send("PUT", BUDGET, {"usd": 8}).json()
    assert (body["on_spent"], body["warn_at"], body["holds"]) == ("hold", [50, 80, 100], True)
    assert "start again on 1 December 2026, 00:00 UTC" in body["sentence"]


def test_null_takes_a_budget_away(root, project):
    root.send("PUT", BUDGET, {"usd": 8})
    assert root.send("PUT", BUDGET, {"usd": None}).json()["usd"] is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"usd": 0},
        {"usd": -1},
        {"usd": "much"},
        {"usd": "NaN"},
        {"usd": "10000000.01"},
        {"usd": 1, "on_spent": "explode"},
        {"usd": 1, "warn_at": [0]},
        {"usd": 1, "warn_at": [1001]},
        {"usd": 1, "warn_at": list(range(1, 30))},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(root, project, body):
    assert_problem(root.send("PUT", BUDGET, body), 400, "invalid_request")
    assert root.get(BUDGET).json()["usd"] is None


@pytest.mark.feature("P8.1")
def test_only_an_administrator_with_a_token_that_writes_and_reaches_all_sets_budgets(
    admin, project
):
    assert_problem(admin.send("PUT", BUDGET, {"usd": 1}), 403, "permission_denied")
    boss = make_user(is_superuser=True)
    Membership.objects.create(project=project, user=boss, role=Role.ADMIN)
    for token in ({"read_only": True}, {"project": project}):
        caller = caller_for(boss, **token)
        assert_problem(caller.send("PUT", BUDGET, {"usd": 1}), 403, "permission_denied")
        assert caller.get(BUDGET).json()["usd"] is None


def test_usage_by_person_counts_money_nodes_and_gpus(viewer, project):
    ana, ben = make_user("ana"), make_user("ben")
    gpus = make_spec(resources={"accelerators": "H100:8"})
    spend(project, MIDNIGHT, 2, "8", ana, num_nodes=3, spec=gpus)
    spend(project, MIDNIGHT, 4, "1", ben)
    spend(project, MIDNIGHT, 1, "2", ana, num_nodes=1)
    body = viewer.get(USAGE).json()
    assert body["rows"] == [
        {"key": "ana", "name": "ana", "usd": "10.000000", "node_hours": 7.0, "gpu_hours": 48.0},
        {"key": "ben", "name": "ben", "usd": "1.000000", "node_hours": 4.0, "gpu_hours": 0.0},
    ]
    assert (body["usd"], body["node_hours"], body["gpu_hours"]) == ("11.000000", 11.0, 48.0)
    assert (body["first_day"], body["last_day"]) == ("2026-11-01", "2026-11-24")


def test_usage_by_job_lists_idle_machines_separately(viewer, project):
    job = spend(project, MIDNIGHT, 4, "8", kept=1)
    rows = viewer.get(USAGE, {"by": "job"}).json()["rows"]
    assert [(row["key"], row["usd"]) for row in rows] == [
        ("", "6.000000"),
        (str(job.pk), "2.000000"),
    ]
    assert rows[1]["name"] == job.name


def test_usage_by_day_divides_at_midnight_and_names_every_day(viewer, project):
    spend(project, MIDNIGHT - 18 * HOUR, 24, "24")
    days = {"by": "day", "from": "2026-11-22", "to": "2026-11-24"}
    body = viewer.get(USAGE, days).json()
    assert [(row["key"], row["usd"]) for row in body["rows"]] == [
        ("2026-11-22", "0.000000"),
        ("2026-11-23", "18.000000"),
        ("2026-11-24", "6.000000"),
    ]
    assert viewer.get(USAGE, {"to": "2026-11-23"}).json()["usd"] == "18.000000"


def test_what_a_deleted_job_has_cost_stays_with_the_project(viewer, project):
    spend(project, MIDNIGHT, 2, "8").delete()
    rows = viewer.get(USAGE).json()["rows"]
    assert [(row["key"], row["usd"]) for row in rows] == [("", "8.000000")]


def test_where_a_job_leaves_a_choice_of_gpus_their_hours_are_not_known(viewer, project):
    choice = make_spec(resources={"any_of": [{"accelerators": "H100:8"}, {"cpus": 4}]})
    spend(project, MIDNIGHT, 2, "8", spec=choice)
    assert viewer.get(USAGE).json()["gpu_hours"] is None


@pytest.mark.parametrize("by", ["day", "user"])
def test_days_far_ahead_are_refused_and_the_first_day_there_is_is_not(viewer, project, by):
    for query in ({"to": "9999-12-31"}, {"from": "9999-12-31", "to": "9999-12-31"}):
        answer = viewer.get(USAGE, {"by": by, **query})
        assert_problem(answer, 400, "invalid_request")
        assert "the last possible day is 2027-12-29" in answer.content.decode()
    for query in ({"to": "2027-12-29"}, {"from": "0001-01-01", "to": "0001-01-31"}):
        assert viewer.get(USAGE, {"by": by, **query}).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        {"from": "2026-11-24", "to": "2026-11-23"},
        {"from": "2020-01-01"},
        {"from": "yesterday"},
        {"by": "moon"},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(viewer, project, query):
    assert_problem(viewer.get(USAGE, query), 400, "invalid_request")


def test_days_to_come_have_cost_nothing(viewer, project):
    spend(project, MIDNIGHT, 2, "8")
    days = {"from": "2026-11-24", "to": "2027-01-31", "by": "day"}
    rows = viewer.get(USAGE, days).json()["rows"]
    assert [row["usd"] for row in rows] == ["8.000000", *["0.000000"] * 68]
