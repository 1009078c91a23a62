"""POST /projects/{slug}/jobs/{id}/actions/...: cancel, hold, release, prioritize, extend, rerun."""

from __future__ import annotations

import pytest

from jobs.models import Job
from jobs.statuses import JobStatus
from tests.factories import make_job, make_spec
from tests.integration.api.conftest import assert_problem


def test_cancelling_a_queued_job_ends_it_at_once(maintainer, project):
    job = make_job(project)
    response = maintainer.post(f"/projects/rl/jobs/{job.pk}/actions/cancel")
    assert (response.status_code, response.json()["status"]) == (202, "CANCELLED")


def test_cancelling_a_running_job_stops_it_and_may_be_repeated(maintainer, project):
    job = make_job(project, status=JobStatus.RUNNING)
    for _ in range(2):
        response = maintainer.post(f"/projects/rl/jobs/{job.pk}/actions/cancel")
        assert (response.status_code, response.json()["status"]) == (202, "STOPPING")


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_a_job_that_has_ended_cannot_be_cancelled(maintainer, project, status):
    job = make_job(project, status=JobStatus(status))
    response = maintainer.post(f"/projects/rl/jobs/{job.pk}/actions/cancel")
    assert_problem(response, 409, "job_already_final")


def test_members_cancel_their_own_jobs_only(member, project):
    own = make_job(project, submitted_by=member.user)
    anothers = make_job(project)
    assert member.post(f"/projects/rl/jobs/{own.pk}/actions/cancel").status_code == 202
    response = member.post(f"/projects/rl/jobs/{anothers.pk}/actions/cancel")
    assert_problem(response, 403, "permission_denied")
    anothers.refresh_from_db()
    assert anothers.status == JobStatus.QUEUED


def test_a_rerun_is_a_new_job_that_knows_where_it_comes_from(member, project):
    job = make_job(project, status=JobStatus.FAILED)
    response = member.post(f"/projects/rl/jobs/{job.pk}/actions/rerun")
    again = response.json()
    assert response.status_code == 201
    assert (again["rerun_of"], again["status"]) == (job.pk, "QUEUED")
    assert response["Location"] == f"/api/v1/projects/rl/jobs/{again['id']}"
    assert Job.objects.count() == 2


def test_a_rerun_leaves_out_deleted_jobs_only_on_request(member, project):
    spec = make_spec(portal={"depends_on": [{"job": "gone", "after": "success"}]})
    job = make_job(project, status=JobStatus.FAILED, spec=spec)
    path = f"/projects/rl/jobs/{job.pk}/actions/rerun"
    assert_problem(member.post(path), 422, "invalid_spec")
    assert_problem(member.post(path, {"drop_deleted": False}), 422, "invalid_spec")
    assert_problem(member.post(path, {"drop_deleted": "perhaps"}), 400, "invalid_request")
    assert member.post(path, {"drop_deleted": True}).status_code == 201


def test_a_hold_is_answered_with_the_job_and_who_holds_it(member, project):
    job = make_job(project, submitted_by=member.user)
    for _ in range(2):
        response = member.post(f"/projects/rl/jobs/{job.pk}/actions/hold")
        body = response.json()
        assert response.status_code == 200
        assert (body["status"], body["wait_reason"]) == ("QUEUED", "HELD")
        assert body["wait_message"] == f"Held by {member.user.get_username()}."
        assert (body["can_hold"], body["can_release"]) == (False, True)


def test_a_release_is_answered_with_the_job_as_it_waits_now(member, project):
    job = make_job(project, submitted_by=member.user)
    member.post(f"/projects/rl/jobs/{job.pk}/actions/hold")
    for _ in range(2):
        response = member.post(f"/projects/rl/jobs/{job.pk}/actions/release")
        body = response.json()
        assert (response.status_code, body["wait_reason"], body["wait_message"]) == (200, "", "")
        assert (body["can_hold"], body["can_release"]) == (True, False)


def test_a_started_job_cannot_be_held(maintainer, project):
    job = make_job(project, status=JobStatus.RUNNING)
    response = maintainer.post(f"/projects/rl/jobs/{job.pk}/actions/hold")
    assert "Cancel it instead" in assert_problem(response, 409, "conflict")["detail"]


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_members_hold_and_release_their_own_jobs_only(member, project, verb):
    own = make_job(project, submitted_by=member.user)
    anothers = make_job(project)
    assert member.post(f"/projects/rl/jobs/{own.pk}/actions/{verb}").status_code == 200
    response = member.post(f"/projects/rl/jobs/{anothers.pk}/actions/{verb}")
    assert_problem(response, 403, "permission_denied")


def test_a_job_can_be_submitted_held(member):
    spec = {"run": "true", "portal": {"hold": True}}
    response = member.post("/projects/rl/jobs", {"spec": spec})
    assert (response.status_code, response.json()["wait_reason"]) == (201, "HELD")


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "prioritize", "extend", "rerun"])
def test_actions_are_posted(member, project, verb):
    job = make_job(project)
    response = member.get(f"/projects/rl/jobs/{job.pk}/actions/{verb}")
    assert_problem(response, 405, "method_not_allowed")


def test_a_new_priority_is_answered_with_the_job(member, project):
    job = make_job(project, submitted_by=member.user)
    address = f"/projects/rl/jobs/{job.pk}"
    assert member.get(address).json()["can_prioritize"]
    for _ in range(2):
        response = member.post(f"{address}/actions/prioritize", {"priority": 70})
        assert (response.status_code, response.json()["priority"]) == (200, 70)
    Job.objects.update(status=JobStatus.RUNNING)
    assert not member.get(address).json()["can_prioritize"]
    response = member.post(f"{address}/actions/prioritize", {"priority": 80})
    assert "has started already" in assert_problem(response, 409, "conflict")["detail"]


@pytest.mark.parametrize("body", [{}, {"priority": 101}, {"priority": -1}, {"priority": "high"}])
def test_a_priority_that_is_none_is_refused_and_the_old_one_stays(maintainer, project, body):
    job = make_job(project)
    response = maintainer.post(f"/projects/rl/jobs/{job.pk}/actions/prioritize", body)
    assert "priority" in str(assert_problem(response, 400, "invalid_request"))
    assert Job.objects.get().priority == 50


def test_an_extension_is_answered_with_the_job_and_how_long_it_may_run_now(maintainer, project):
    spec = make_spec(portal={"max_duration": "2h"})
    job = make_job(project, status=JobStatus.RUNNING, spec=spec)
    address = f"/projects/rl/jobs/{job.pk}/actions/extend"
    for body in ({"duration": "1h"}, {"seconds": 3600}):
        response = maintainer.post(address, body)
        assert response.status_code == 200
    body = response.json()
    assert (body["max_duration_s"], body["stops_at"]) == (4 * 3600, None)
    assert body["can_extend"]
    project.max_duration_s = 4 * 3600
    project.save()
    assert_problem(maintainer.post(address, {"seconds": 1}), 409, "over_limit")


@pytest.mark.parametrize(
    "body", [{}, {"duration": "soon"}, {"seconds": 0}, {"duration": "1h", "seconds": 60}]
)
def test_what_is_no_length_of_time_extends_nothing(maintainer, project, body):
    spec = make_spec(portal={"max_duration": "2h"})
    job = make_job(project, status=JobStatus.RUNNING, spec=spec)
    response = maintainer.post(f"/projects/rl/jobs/{job.pk}/actions/extend", body)
    assert_problem(response, 400, "invalid_request")
