"""The forecast of a plan: what happens if the job is submitted and nothing else changes."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.models import Cluster, Job, Project, Queue, Quota
from jobs.reconcilers import queue
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job, make_project, make_spec, set_default_queue

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("fake"),
    pytest.mark.feature("S2.7"),
]
SAME = ("code", "reason", "sentence", "position", "of", "ahead", "limit", "holders", "basis")
SPEC = {"name": "new", "run": "./train"}


def start_of(caller: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the forecast of a job before it is submitted."""
    answer = caller.post("/projects/rl/plan", yaml.safe_dump(spec), content_type="application/yaml")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()["start"]
    return found


def submitted(caller: Any, spec: dict[str, Any]) -> Job:
    answer = caller.post("/projects/rl/jobs", yaml.safe_dump(spec), content_type="application/yaml")
    assert answer.status_code == 201, answer.content
    return Job.objects.get(pk=answer.json()["id"])


def why(caller: Any, job: Job) -> dict[str, Any]:
    found: dict[str, Any] = caller.get(f"/projects/rl/jobs/{job.pk}/why").json()
    return found


def fill(dice: random.Random, project: Project) -> None:
    """Make other jobs, of two projects, that run and that wait."""
    set_default_queue(rank=dice.randrange(2))
    Queue.objects.update_or_create(name="urgent", defaults={"rank": 1})
    if dice.random() < 0.4:
        Quota.objects.create(project=project, caps={"nodes": dice.randint(4, 6)})
    other = make_project(share_weight=dice.choice([0.5, 1, 4]))
    for _ in range(dice.randint(0, 6)):
        nodes, portal = dice.randint(1, 4), drawn_portal(dice)
        job = make_job(
            dice.choice([project, other]),
            num_nodes=nodes,
            spec=make_spec(num_nodes=nodes, portal=portal),
            priority=portal["priority"],
            status=dice.choice([JobStatus.QUEUED, JobStatus.QUEUED, JobStatus.RUNNING]),
        )
        if job.status == JobStatus.RUNNING:
            make_attempt(job, run_started_at=timezone.now())


def drawn_portal(dice: random.Random) -> dict[str, Any]:
    portal = {
        "queue": dice.choice(["default", "urgent"]),
        "priority": dice.choice([10, 50, 50, 90]),
    }
    return {**portal, "max_duration": "1h"} if dice.random() < 0.7 else portal


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 22])
def test_a_forecast_is_what_the_scheduler_does_after_the_submit(member, project, fake, seed):
    dice = random.Random(seed)
    fake.set_capacity(dice.randint(4, 8))
    fill(dice, project)
    spec = {**SPEC, "num_nodes": dice.randint(1, 4), "portal": drawn_portal(dice)}
    forecast = start_of(member, spec)
    assert not Job.objects.filter(name="new").exists()
    job = submitted(member, spec)
    waiting = why(member, job)
    assert {key: forecast[key] for key in SAME} == {key: waiting[key] for key in SAME}
    expected = [parse_datetime(each["expected_at"] or "") for each in (forecast, waiting)]
    if all(expected):
        assert abs((expected[0] - expected[1]).total_seconds()) < 60
    else:
        assert expected == [None, None]
    queue.run_pass()
    job.refresh_from_db()
    assert (job.status != JobStatus.QUEUED) == (forecast["code"] == "next")


def test_the_forecast_of_an_array_counts_the_jobs_that_start_at_once(member, project, fake):
    fake.set_capacity(2)
    array = {**SPEC, "portal": {"array": {"lr": [1, 2, 3]}}}
    said = start_of(member, array)["sentence"]
    assert said.startswith("2 of its 3 jobs start with the next scheduling pass")
    one = {**SPEC, "portal": {"array": {"lr": [1, 2, 3]}, "max_parallel": 1}}
    assert start_of(member, one)["sentence"].startswith("1 of its 3 jobs starts with")
    fake.set_capacity(3)
    assert start_of(member, array)["sentence"].startswith("All its 3 jobs start with")
    make_attempt(make_job(project, num_nodes=3, status=JobStatus.RUNNING))
    said = start_of(member, array)["sentence"]
    assert said == "The first of its 3 jobs: Needs 1 node; 0 of 3 are free on fake."


def test_the_forecast_of_a_job_that_must_not_start_yet_says_what_it_waits_for(member, project):
    needed = make_job(project, name="first", status=JobStatus.RUNNING)
    after = {**SPEC, "portal": {"depends_on": [needed.pk]}}
    forecast = start_of(member, after)
    waiting = why(member, submitted(member, after))
    assert forecast["code"] == "dependency"
    assert {key: forecast[key] for key in SAME} == {key: waiting[key] for key in SAME}
    assert start_of(member, {**SPEC, "portal": {"hold": True}})["code"] == "held"


def test_the_forecast_of_a_job_that_names_a_busy_cluster_names_the_job_on_it(member, project):
    fields = {"backend_name": "fake", "is_reusable": True, "status": ClusterStatus.UP}
    cluster = Cluster.objects.create(project=project, name="mpa-1", num_nodes=2, **fields)
    holder = make_job(project, status=JobStatus.RUNNING)
    make_attempt(holder, cluster=cluster)
    naming = {**SPEC, "portal": {"cluster": "mpa-1"}}
    forecast = start_of(member, naming)
    waiting = why(member, submitted(member, naming))
    assert str(holder.pk) in forecast["sentence"]
    assert {key: forecast[key] for key in SAME} == {key: waiting[key] for key in SAME}
