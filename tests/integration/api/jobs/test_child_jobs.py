"""Child jobs over REST: requests that the program of a job may make, and those it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test.utils import override_settings
from django.utils import timezone

from jobs.actions.jobs.bulk import BulkAction
from jobs.models import Attempt, Job, JobEvent, Membership
from jobs.statuses import JobStatus, Role
from tests.each_case import check_each
from tests.factories import make_attempt, make_job, make_member, make_project
from tests.integration.api.conftest import YAML, assert_problem
from tests.integration.api.driver_calls import (
    child_of,
    program_of,
    running,
    submit,
    token_of,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.feature("S2.6"),
    pytest.mark.usefixtures("fake_backend"),
]
JOBS = "/projects/rl/jobs"
SWEEP = YAML + "portal: {array: {lr: [1, 2, 3]}}\n"


@pytest.fixture
def fake_backend(settings, tmp_path) -> None:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")


@pytest.fixture
def parent(project) -> Attempt:
    """Create a running job of a member's and return its attempt."""
    return running(project)


def test_a_program_submits_a_child_in_its_submitters_name(parent, member):
    answer = submit(program_of(parent))
    assert answer.status_code == 201, answer.content
    row = answer.json()
    assert (row["parent"], row["parent_attempt"]) == (parent.job_id, parent.number)
    assert row["submitted_by"] == parent.job.submitted_by.get_username()
    assert member.get(f"{JOBS}/{row['id']}").json()["parent"] == parent.job_id
    reported = JobEvent.objects.filter(job=parent.job_id).get()
    assert (reported.message, reported.attempt_id) == (
        f"Submitted job {row['id']} (hello).",
        parent.pk,
    )
    first = JobEvent.objects.get(job=row["id"])
    assert first.message == f"Submitted by job {parent.job_id}, attempt 1"


def test_a_program_sees_and_cancels_its_own_children_and_no_other_job(parent, project):
    program, child = program_of(parent), child_of(parent)
    others = [parent.job, make_job(project, submitted_by=parent.job.submitted_by)]
    others += [child_of(running(project)), make_job(make_project("vision"))]
    assert [row["id"] for row in program.get(JOBS).json()["results"]] == [child.pk]
    for part in ("", "/attempts", "/events", "/logs"):
        assert program.get(f"{JOBS}/{child.pk}{part}").status_code == 200, part
    for other in others:
        for part in ("", "/attempts", "/events", "/logs"):
            path = f"/projects/{other.project.slug}/jobs/{other.pk}{part}"
            assert_problem(program.get(path), 404, "not_found")
        path = f"/projects/{other.project.slug}/jobs/{other.pk}/actions/cancel"
        assert_problem(program.post(path), 404, "not_found")
    answer = program.post(f"{JOBS}/{child.pk}/actions/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, JobStatus.CANCELLED)
    assert answer.json()["message"] == f"Cancelled by job {parent.job_id}."


def test_a_child_does_not_wait_for_a_job_with_which_it_ends(project):
    parent = running(project, name="first")
    for attempt in (parent, running(project, parent=parent.job, depth=1)):
        for wanted in (parent.job_id, parent.job.name):
            needs = f"depends_on: [{json.dumps(wanted)}]"
            answer = submit(program_of(attempt), YAML + f"portal: {{{needs}}}\n")
            (error,) = assert_problem(answer, 422, "invalid_spec")["errors"]
            assert (error["path"], error["code"]) == ("portal.depends_on[0]", "dependency_cycle")
            assert f"A child of job {parent.job_id} (first) ends with it" in error["message"]


def test_a_detached_child_may_wait_for_its_parent(parent):
    needs = f"portal: {{detached: true, depends_on: [{parent.job_id}]}}\n"
    child = child_of(parent, YAML + needs)
    assert child.dependencies.get().needs_id == parent.job_id
    # What a detached one submits in turn ends with it, and not with the first.
    needs = f"portal: {{depends_on: [{parent.job_id}]}}\n"
    detached = running(parent.job.project, parent=parent.job, detached=True, depth=1)
    assert child_of(detached, YAML + needs).dependencies.get().needs_id == parent.job_id


def test_a_later_attempt_finds_the_children_of_the_one_before(parent, member):
    child = child_of(parent)
    Attempt.objects.filter(pk=parent.pk).update(ended_at=timezone.now())
    later = program_of(make_attempt(parent.job))
    assert [row["id"] for row in later.get(JOBS).json()["results"]] == [child.pk]
    grandchild = child_of(running(parent.job.project))
    for caller in (member, later):
        found = caller.get(JOBS, {"parent": parent.job_id}).json()["results"]
        assert [(row["id"], row["parent_attempt"]) for row in found] == [(child.pk, 1)]
    assert grandchild.parent_id != parent.job_id


def test_the_token_ends_with_its_attempt(parent):
    Attempt.objects.filter(pk=parent.pk).update(ended_at=timezone.now())
    assert_problem(submit(program_of(parent)), 401, "authentication_failed")
    assert not Job.objects.filter(parent=parent.job_id).exists()


@pytest.mark.parametrize("status", [JobStatus.STOPPING, JobStatus.CANCELLED])
def test_a_job_that_is_ending_submits_nothing_any_more(parent, status):
    ended = timezone.now() if status.is_final else None
    Job.objects.filter(pk=parent.job_id).update(status=status, ended_at=ended)
    assert "is ending" in assert_problem(submit(program_of(parent)), 409, "conflict")["detail"]


def test_a_user_who_may_not_submit_any_more_does_not_by_a_job(parent):
    membership = Membership.objects.filter(user=parent.job.submitted_by)
    membership.update(role=Role.VIEWER)
    assert_problem(submit(program_of(parent)), 403, "permission_denied")
    membership.delete()
    assert_problem(submit(program_of(parent)), 404, "not_found")
    user = parent.job.submitted_by
    user.is_active = False
    user.save()
    assert_problem(submit(program_of(parent)), 401, "authentication_failed")


def test_a_token_that_was_made_up_is_refused(parent, project):
    neighbour = running(project)
    own, other = token_of(parent), token_of(neighbour)
    with override_settings(SECRET_KEY="another installation's " * 3):
        elsewhere = token_of(parent)
    mixed = own.rpartition("_")[0] + "_" + other.split("_", 2)[2]
    for token in (own[:-1], own + "x", mixed, elsewhere, "mpj_", "mpj_1", "mpj_" + "9" * 40 + "_x"):
        program = program_of(parent)
        program.headers["Authorization"] = f"Bearer {token}"
        assert_problem(submit(program), 401, "authentication_failed")


def test_a_program_does_nothing_else_to_its_children(parent):
    program, child = program_of(parent), child_of(parent)
    assert_problem(program.delete(f"{JOBS}/{child.pk}"), 403, "permission_denied")
    assert_problem(submit(program, slug="vision"), 404, "not_found")
    for verb in ("hold", "release", "rerun", "prioritize", "extend"):
        path = f"{JOBS}/{child.pk}/actions/{verb}"
        assert_problem(program.post(path, {}), 401, "authentication_failed")


def test_the_child_of_an_administrators_job_is_no_administrator(project):
    admin = make_member(project, Role.MEMBER, is_superuser=True)
    program = program_of(running(project, submitted_by=admin))
    make_project("vision")
    assert_problem(submit(program, slug="vision"), 404, "not_found")
    assert_problem(program.get("/clouds"), 401, "authentication_failed")


def test_children_are_bounded_in_number_and_in_depth(parent, settings):
    settings.MPORTAL_MAX_CHILDREN = 3
    program = program_of(parent)
    first = child_of(parent)
    detail = assert_problem(submit(program, SWEEP), 409, "conflict")["detail"]
    assert "has 1 child jobs that have not ended, and may have 3; 3 more" in detail
    Job.objects.filter(pk=first.pk).update(status=JobStatus.FAILED, ended_at=timezone.now())
    assert submit(program, SWEEP).status_code == 201
    assert_problem(submit(program), 409, "conflict")
    attempt = parent
    Job.objects.filter(parent=parent.job_id).delete()
    for depth in (1, 2, 3):
        child = child_of(attempt)
        assert child.depth == depth
        Job.objects.filter(pk=child.pk).update(status=JobStatus.RUNNING)
        attempt = make_attempt(child)
    assert "3 levels down" in assert_problem(submit(program_of(attempt)), 409, "conflict")["detail"]


def test_a_sweep_is_one_array_of_children_that_is_watched_and_cancelled_as_one(parent, project):
    program = program_of(parent)
    row = submit(program, SWEEP).json()
    array = f"/projects/rl/arrays/{row['array']}"
    assert program.get(array).json()["counts"] == {"QUEUED": 3}
    assert_problem(program_of(running(project)).get(array), 404, "not_found")
    # A user ran one of them again: that is no child.
    again = make_job(project, array_id=row["array"], array_index=0)
    assert program.post(f"{array}/actions/cancel").status_code == 202
    again.refresh_from_db()
    assert again.status == JobStatus.QUEUED
    assert set(Job.objects.filter(parent=parent.job_id).values_list("status")) == {("CANCELLED",)}


def test_several_documents_are_children_that_may_wait_for_one_another(parent):
    text = "name: a\nrun: 'true'\n---\nname: b\nrun: 'true'\nportal: {depends_on: [a]}\n"
    answer = program_of(parent).post(f"{JOBS}/batch", json.dumps({"spec": text}))
    assert answer.status_code == 201, answer.content
    assert [row["parent"] for row in answer.json()["results"]] == [parent.job_id] * 2


def test_the_same_key_gives_the_same_child_also_to_the_next_attempt(parent, member):
    key = {"Idempotency-Key": "eval-1000"}
    first = submit(program_of(parent), **key).json()["id"]
    assert submit(program_of(parent), **key).json()["id"] == first
    Attempt.objects.filter(pk=parent.pk).update(ended_at=timezone.now())
    assert submit(program_of(make_attempt(parent.job)), **key).json()["id"] == first


def test_a_key_never_gives_a_program_a_job_that_is_not_its_child(project, member):
    key = {"Idempotency-Key": "eval-1000"}
    own = submit(member, **key).json()["id"]
    programs = [program_of(running(project, submitted_by=member.user)) for _ in range(2)]
    assert len({own, *(submit(each, **key).json()["id"] for each in programs)}) == 3


def test_a_program_cancels_many_children_at_once_and_does_nothing_else_to_them(parent):
    program, child = program_of(parent), child_of(parent)

    def check(action: str) -> None:
        body: dict[str, Any] = {"action": action, "jobs": [child.pk]}
        body |= {"priority": 5} if action == BulkAction.PRIORITIZE else {}
        body |= {"labels": {"a": "b"}} if action == BulkAction.LABEL else {}
        assert_problem(program.post(f"{JOBS}/actions", body), 403, "permission_denied")

    check_each([each.value for each in BulkAction if each != BulkAction.CANCEL], check)
    assert Job.objects.count() == 2
    body = {"action": "cancel", "jobs": [child.pk]}
    [outcome] = program.post(f"{JOBS}/actions", body).json()["results"]
    assert outcome["result"] == "done"
