"""Wait reasons of a job: causes that others bring about, and that every known cause was planted."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.jobs.settle_dependencies import settle_dependencies
from jobs.actions.projects.set_budget import set_budget
from jobs.models import Cluster, Job, Pool, Queue
from jobs.permissions import Actor
from jobs.scheduling.causes import Cause
from jobs.statuses import OnSpent, WaitReason
from tests.factories import make_project, make_user
from tests.integration.api.jobs import test_why, test_why_holders
from tests.integration.api.jobs.test_why import no_hints, queued, running, why

__all__ = ["no_hints"]  # a fixture
pytestmark = test_why.pytestmark
WHY = Path(__file__).parents[4] / "docs/reference/why.md"


def spec(name: str, **portal: Any) -> dict[str, Any]:
    return {"name": name, "run": "true", "resources": {"infra": "fake"}, "portal": portal}


def of(client: Any, number: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/projects/rl/jobs/{number}/why").json()
    return found


@pytest.fixture
def ranked(fake) -> Pool:
    """Create a pool of two nodes, with a queue whose jobs preempt others."""
    fake.set_capacity(8)
    pool = Pool.objects.create(
        name="gpus", backend_name="fake", caps={"nodes": 2}, preempts_by_rank=True
    )
    Queue.objects.create(name="low", pool=pool, preemptible=True)
    Queue.objects.create(name="urgent", pool=pool, rank=10)
    return pool


@pytest.mark.feature("S2.6")
def test_a_job_that_waits_for_another_learns_which(member, project):
    body = {"specs": [spec("b", depends_on=["a"]), spec("a")]}
    answer = member.post("/projects/rl/jobs/batch", body)
    assert answer.status_code == 201, answer.content
    after, before = answer.json()["results"]
    reported = of(member, after["id"])
    assert (reported["code"], reported["reason"]) == ("dependency", "DEPENDENCY")
    assert str(before["id"]) in reported["sentence"]


@pytest.mark.feature("S2.6")
def test_a_job_held_for_a_failed_dependency_learns_so_and_how_to_go_on(member, project):
    held = spec("b", depends_on=["a"], if_dependency_fails="hold")
    answer = member.post("/projects/rl/jobs/batch", {"specs": [held, spec("a")]})
    after, before = answer.json()["results"]
    Job.objects.filter(pk=before["id"]).update(status="FAILED", ended_at=timezone.now())
    settle_dependencies(after["id"])
    reported = of(member, after["id"])
    assert (reported["code"], reported["reason"]) == ("held", "HELD")
    assert reported["sentence"] == (
        f"It needs what did not succeed: job {before['id']} (a) failed. It is held until "
        f"`mportal release {after['id']}`, or its button, releases it."
    )


@pytest.mark.feature("S2.6")
def test_a_job_that_waits_for_its_array_learns_how_many_may_run(member, project):
    array = spec("ppo", array={"lr": ["1e-4", "3e-4"]}, max_parallel=1)
    answer = member.post("/projects/rl/jobs", {"spec": array})
    assert answer.status_code == 201, answer.content
    first = answer.json()
    reported = of(member, first["id"] + 1)
    assert (reported["code"], reported["reason"]) == ("parallel", "PARALLEL")
    assert reported["sentence"] == f"Array {first['array']} runs at most 1 job at once."


@pytest.mark.feature("P5.4")
def test_a_preempting_job_learns_its_victims(member, project, ranked):
    victim = running(project, 2, queue_name="low")
    reported = why(member, queued(project, 2, queue_name="urgent"))
    assert (reported["code"], reported["reason"]) == ("preempting", "CAPACITY")
    said = f"Waits for 2 nodes of job {victim.pk}, which is being stopped for it."
    assert reported["sentence"] == said


@pytest.mark.feature("P5.4")
def test_a_preempted_job_learns_for_whom_and_what_it_waits_for(member, project, ranked):
    urgent = running(project, 2, queue_name="urgent", portal={"max_duration": "1h"})
    victim = queued(project, 2, queue_name="low", preempted_by=urgent, wait_reason="PREEMPTED")
    reported = why(member, victim)
    assert (reported["code"], reported["reason"]) == ("preempted", "PREEMPTED")
    assert reported["sentence"].startswith(f"Was preempted by job {urgent.pk}. Needs 2 nodes;")
    limit = {"kind": "machines", "name": "gpus", "what": "nodes", "needed": 2, "used": 2, "cap": 2}
    assert (reported["limit"], reported["basis"]) == (limit, "bounds")
    assert [(each["job_id"], each["has"]) for each in reported["holders"]] == [
        (urgent.pk, "2 nodes")
    ]


def spend(project: Any) -> None:
    """Use up a budget of the project that keeps its jobs from starting."""
    set_budget(Actor(make_user(is_superuser=True)), project, Decimal(1), OnSpent.HOLD, (100,))
    now = timezone.now()
    values = {"status": "GONE", "created_at": now, "gone_at": now, "billed_at": now}
    Cluster.objects.create(
        project=project, name="mp-1", backend_name="fake", num_nodes=1, usd=Decimal(2), **values
    )


@pytest.mark.feature("P5.6")
def test_a_budget_that_is_spent_is_named_and_free_machines_promise_nothing(member, project):
    spend(project)
    reported = why(member, queued(project))
    assert (reported["code"], reported["reason"]) == ("budget", "BUDGET")
    assert "start again on" in reported["sentence"]
    assert (reported["expected_at"], reported["basis"]) == (None, "")


def test_who_waits_for_a_budget_takes_no_machines_from_those_behind(member, project, fake):
    fake.set_capacity(1)
    others = make_project("spent")
    spend(others)
    running(project, portal={"max_duration": "1h"})
    queued(others, name="other")
    queued(project, portal={"max_duration": "1h"})
    reported = why(member, queued(project, portal={"max_duration": "2h"}))
    assert (reported["code"], reported["position"], reported["basis"]) == ("behind", 3, "past_runs")


def test_a_job_that_can_never_start_is_reported_as_such(member, project, fake):
    fake.set_capacity(2)
    reported = why(member, queued(project, 3))
    said = "Needs 3 nodes, but fake has 2 in all."
    assert (reported["code"], reported["sentence"]) == ("never", said)


def test_one_that_no_pass_has_looked_at_yet_waits_for_its_turn(member, project):
    soon = timezone.now() + timezone.timedelta(minutes=1)
    assert why(member, queued(project, next_try_at=soon))["code"] == "queued"


# Each code of docs/reference/why.md, and the test that brings its cause about.
PLANTED = {
    "next": test_why.test_a_job_that_starts_next_or_runs_is_said_to,
    "not_waiting": test_why.test_a_job_that_starts_next_or_runs_is_said_to,
    "no_room": test_why.test_the_first_waiting_job_learns_the_holders_of_machines_and_until_when,
    "behind": test_why.test_a_job_behind_a_reservation_learns_its_holder_and_its_position,
    "quota": test_why.test_a_quota_is_named_with_whose_it_is_and_who_uses_it,
    "price": test_why.test_a_quota_of_money_reports_what_is_left_and_before_that_for_what_it_waits,
    "told": test_why.test_a_backend_that_is_away_is_named_in_its_own_words,
    "held": test_why.test_the_holder_is_named,
    "backoff": test_why.test_a_pause_after_a_failed_start_is_reported_in_the_clouds_words,
    "dependency": test_a_job_that_waits_for_another_learns_which,
    "parallel": test_a_job_that_waits_for_its_array_learns_how_many_may_run,
    "preempting": test_a_preempting_job_learns_its_victims,
    "preempted": test_a_preempted_job_learns_for_whom_and_what_it_waits_for,
    "ending_cluster": (
        test_why_holders.test_machines_that_are_kept_without_a_job_hold_nothing_of_a_quota
    ),
    "budget": test_a_budget_that_is_spent_is_named_and_free_machines_promise_nothing,
    "never": test_a_job_that_can_never_start_is_reported_as_such,
    "queued": test_one_that_no_pass_has_looked_at_yet_waits_for_its_turn,
}
# The codes of reasons that are reported under another name.
CODES_OF = {WaitReason.CAPACITY: "no_room"}
# A schedule submits its jobs when their time has come: none waits for it.
NEVER_GIVEN = {WaitReason.SCHEDULE}


def test_each_cause_is_planted_and_has_a_line_in_the_reference():
    causes_table = WHY.read_text().partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", causes_table, flags=re.MULTILINE))
    reasons = {CODES_OF.get(each, each.lower()) for each in set(WaitReason) - NEVER_GIVEN}
    causes = {each.code for each in Cause.__subclasses__()}
    assert documented - {"code"} == set(PLANTED)  # but for the heading
    assert causes | reasons <= set(PLANTED)
