"""Children that serve their parent's driver: their specification, their trust, and their end."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.jobs.submit import submit_job
from jobs.attempt_tokens import authority_seed
from jobs.backends.base import LaunchRequest
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import InvalidSpecError
from jobs.models import Job
from jobs.permissions import Actor
from jobs.reconcilers import children, stopping
from jobs.statuses import JobStatus, Role, StopReason
from tests.factories import make_actor, make_attempt
from tests.integration.reconcilers.steps import status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S1.5")]
SPEC: dict[str, Any] = {
    "name": "generators",
    "portal": {"driver": "parent", "meshes": {"generators": 2}},
}
PARENT = {
    "run": "python train.py",
    "setup": "pip install numpy",
    "envs": {"SEED": "1", "LEVEL": "info"},
    "resources": {"cpus": "2", "memory": "4+"},
    "portal": {"meshes": {"trainers": 1}},
}


@pytest.fixture
def parent(project, fake) -> Job:
    fake.set_capacity(8)
    owner = make_actor(project, Role.MEMBER)
    job = submit_job(owner, project, PARENT)
    Job.objects.filter(pk=job.pk).update(status=JobStatus.RUNNING)
    make_attempt(job)
    return Job.objects.get(pk=job.pk)


def request(parent: Job, **more: Any) -> Job:
    """Submit a child that serves the driver of the parent's latest attempt."""
    driver = Actor(parent.submitted_by, driver=parent.attempts.latest("number"))
    return submit_job(driver, parent.project, {**SPEC, **more})


def sweep() -> None:
    for job_id in children.due():
        children.step(job_id)


def test_it_has_the_code_and_the_network_of_its_parent_unless_it_names_others(parent):
    child = request(parent, envs={"LEVEL": "debug"}, resources={"cpus": "4"})
    same = request(parent)
    assert child.spec["setup"] == PARENT["setup"]
    assert child.spec["envs"] == {"SEED": "1", "LEVEL": "debug"}
    assert child.spec["resources"] == {"cpus": "4"}
    assert same.spec["resources"] == parent.spec["resources"] != child.spec["resources"]
    assert (child.num_nodes, child.spec["run"]) == (2, "")
    # Slurm may run all of them on one node.
    assert [job.spec["portal"]["port"] for job in (parent, child, same)] == [22222, 22225, 22228]


def test_a_person_cannot_submit_one(project, parent):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(make_actor(project, Role.MEMBER), project, SPEC)
    [error] = caught.value.data["errors"]
    assert (error["path"], error["code"]) == ("portal.driver", "conflict")
    assert "request_mesh" in error["message"]


def test_its_nodes_trust_those_of_its_parents_attempt_and_no_other(parent, tick, monkeypatch):
    seeds: dict[int, bytes] = {}
    launch = FakeBackend.launch

    def note(backend: FakeBackend, wanted: LaunchRequest) -> None:
        seeds[wanted.job_id] = wanted.authority_seed
        launch(backend, wanted)

    monkeypatch.setattr(FakeBackend, "launch", note)
    driver = Actor(parent.submitted_by, driver=parent.attempts.get())
    ordinary = submit_job(driver, parent.project, {"run": "true"})
    child = request(parent)
    tick()
    assert seeds[child.pk] == authority_seed(parent.pk, 1)
    assert seeds[ordinary.pk] == authority_seed(ordinary.pk, 1) != seeds[child.pk]


def test_it_ends_with_its_parents_attempt_though_the_parent_begins_again(parent):
    ordinary = submit_job(
        Actor(parent.submitted_by, driver=parent.attempts.get()), parent.project, {"run": "true"}
    )
    child = request(parent)
    sweep()
    assert status_of(child) == JobStatus.QUEUED
    parent.attempts.update(ended_at=timezone.now())
    second = make_attempt(parent)
    again = request(parent)
    sweep()
    child.refresh_from_db()
    assert (child.status, child.stop_reason) == (JobStatus.CANCELLED, StopReason.PARENT)
    assert child.message == f"Attempt 1 of job {parent.pk}, which it served, has ended."
    assert second.number == 2
    assert [status_of(job) for job in (again, ordinary)] == [JobStatus.QUEUED] * 2


def test_it_is_not_started_again_after_a_loss(parent):
    child = request(parent, portal={**SPEC["portal"], "retry": {"max_attempts": 5}})
    assert (child.request.retry.max_attempts, child.request.retry.max_recoveries) == (1, 0)


def test_one_that_was_preempted_ends_since_no_driver_would_use_it_again(parent):
    child = request(parent)
    make_attempt(child, ended_at=timezone.now(), stop_reason=StopReason.CANCELLED_BY_USER)
    Job.objects.filter(pk=child.pk).update(
        status=JobStatus.STOPPING, stop_reason=StopReason.PREEMPTED, stopping_at=timezone.now()
    )
    stopping.step(child.pk)
    child.refresh_from_db()
    assert (child.status, child.stop_reason) == (JobStatus.CANCELLED, StopReason.PREEMPTED)
