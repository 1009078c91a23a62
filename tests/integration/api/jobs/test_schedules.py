"""REST of schedules."""

from __future__ import annotations

import pytest

from jobs.models import Job, Schedule
from tests.factories import make_schedule
from tests.integration.api.conftest import YAML, assert_problem

PATH = "/projects/rl/schedules"
BODY = {"name": "nightly", "spec": YAML, "cron": "30 2 * * *", "zone": "Europe/Berlin"}


@pytest.mark.feature("P9.2")
def test_one_is_made_read_changed_paused_resumed_run_and_deleted(member):
    made = member.post(PATH, BODY)
    assert made.status_code == 201
    body = made.json()
    assert (body["overlap"], body["catch_up"], body["paused"]) == ("skip", "latest", False)
    assert body["owner"] == member.user.username
    assert body["spec_source"] == YAML
    assert len(body["upcoming"]) == 3 and body["upcoming"][0] == body["next_at"]
    (row,) = member.get(PATH).json()["results"]
    assert (row["name"], row["can_manage"]) == ("nightly", True)
    changed = member.send("PATCH", f"{PATH}/nightly", {"overlap": "allow", "cron": "@weekly"})
    assert (changed.json()["overlap"], changed.json()["cron"]) == ("allow", "@weekly")
    assert changed.json()["zone"] == "Europe/Berlin"
    paused = member.post(f"{PATH}/nightly/actions/pause").json()
    assert (paused["paused"], paused["next_at"], paused["upcoming"]) == (True, None, [])
    assert member.post(f"{PATH}/nightly/actions/resume").json()["paused"] is False
    job = member.post(f"{PATH}/nightly/actions/run")
    assert job.status_code == 201
    assert job["Location"] == f"/api/v1/projects/rl/jobs/{job.json()['id']}"
    assert job.json()["schedule"] == "nightly"
    assert member.get("/projects/rl/jobs").json()["results"][0]["schedule"] == "nightly"
    (run,) = member.get(f"{PATH}/nightly").json()["runs"]
    assert (run["job"], run["is_manual"]) == (job.json()["id"], True)
    assert member.delete(f"{PATH}/nightly").status_code == 204
    assert_problem(member.get(f"{PATH}/nightly"), 404, "not_found")
    assert member.get("/projects/rl/jobs").json()["results"][0]["schedule"] == ""


@pytest.mark.feature("P9.2")
def test_all_that_is_wrong_is_reported_at_once(member):
    wrong = {"name": "No!", "spec": {"nam": 1}, "cron": "x", "zone": "Mars"}
    body = assert_problem(member.post(PATH, wrong), 422, "invalid_spec")
    paths = {row["path"] for row in body["errors"]}
    assert {"schedule.name", "schedule.cron", "schedule.zone", "nam"} <= paths
    assert body["detail"] == "The schedule has errors."


@pytest.mark.parametrize(
    "change",
    [{"name": None}, {"spec": 1}, {"cron": ""}, {"cron": ["x"]}, {"overlap": "never"},
     {"catch_up": "some"}, {"zone": "a\0b"}, {"paused": "maybe"}],
)  # fmt: skip
def test_a_body_of_another_shape_is_refused(member, change):
    assert_problem(member.post(PATH, {**BODY, **change}), 400, "invalid_request")
    assert not Schedule.objects.exists()


def test_a_text_of_several_jobs_is_refused_with_what_to_do(member):
    body = {**BODY, "spec": f"{YAML}---\n{YAML}"}
    (error,) = assert_problem(member.post(PATH, body), 422, "invalid_spec")["errors"]
    assert "a schedule runs one job" in error["message"]
    assert error["line"] == YAML.count("\n") + 1


def test_a_name_that_is_taken_is_a_conflict(member):
    member.post(PATH, BODY)
    assert_problem(member.post(PATH, BODY), 409, "conflict")


def test_a_change_of_nothing_changes_nothing(member):
    before = member.post(PATH, BODY).json()
    after = member.send("PATCH", f"{PATH}/nightly", {}).json()
    assert {**after, "updated_at": ""} == {**before, "updated_at": ""}


def test_one_can_begin_paused(member):
    body = member.post(PATH, {**BODY, "paused": True}).json()
    assert (body["paused"], body["next_at"]) == (True, None)


def test_a_specification_may_be_an_object(member):
    spec = {"name": "hello", "run": "echo 😀"}
    assert member.post(PATH, {**BODY, "spec": spec}).status_code == 201
    job = member.post(f"{PATH}/nightly/actions/run").json()
    assert Job.objects.get(pk=job["id"]).spec["run"] == "echo 😀"


def test_a_member_manages_no_other_members(member, project):
    make_schedule(project)
    assert member.get(f"{PATH}/nightly").json()["can_manage"] is False
    for verb in ("pause", "resume", "run"):
        answer = member.post(f"{PATH}/nightly/actions/{verb}")
        assert_problem(answer, 403, "permission_denied")
    assert_problem(member.delete(f"{PATH}/nightly"), 403, "permission_denied")


def test_times_that_are_seldom_meant_are_remarked_on(member):
    body = member.post(PATH, {**BODY, "cron": "*/90 * * * *"}).json()
    assert [remark.split()[0] for remark in body["remarks"]] == ["*/90"]
    assert member.send("PATCH", f"{PATH}/nightly", {"cron": "@daily"}).json()["remarks"] == []
