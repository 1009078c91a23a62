"""GET and DELETE /projects/{slug}/jobs/{id}, its attempts and its events."""

from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.models import AttemptStage, Job, Worker
from jobs.statuses import ClusterStatus, JobStatus, StageName
from tests.factories import make_attempt, make_job
from tests.integration.api.conftest import YAML, assert_problem


def test_one_job_comes_with_its_specification(member):
    made = member.post("/projects/rl/jobs", YAML, content_type="application/yaml").json()
    job = member.get(f"/projects/rl/jobs/{made['id']}").json()
    assert job["spec_source"] == YAML
    assert job["spec"]["run"] == "echo hello"
    assert {key: job[key] for key in made} == made


@pytest.mark.parametrize("job_id", [0, 987654321, 10**30])
def test_a_job_that_does_not_exist_is_a_problem(viewer, job_id):
    assert_problem(viewer.get(f"/projects/rl/jobs/{job_id}"), 404, "not_found")


def test_attempts_come_with_stages_in_order_and_workers(viewer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.RUNNING, kind="monarch"))
    now = timezone.now()
    AttemptStage.objects.create(
        attempt=attempt, name=StageName.LAUNCH, started_at=now, ended_at=now
    )
    Worker.objects.create(attempt=attempt, rank=0, address="127.64.1.10:22222", exit_code=3)
    (view,) = viewer.get(f"/projects/rl/jobs/{attempt.job_id}/attempts").json()["results"]
    assert [stage["name"] for stage in view["stages"]] == list(StageName)
    assert view["stages"][0]["state"] == "done"
    assert view["workers"][0]["exit_code"] == 3


def test_a_stage_that_was_ended_on_purpose_is_stopped_and_not_failed(viewer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.CANCELLED))
    now = timezone.now()
    AttemptStage.objects.create(
        attempt=attempt, name=StageName.RUN, started_at=now, ended_at=now, failure="stopped"
    )
    path = f"/projects/rl/jobs/{attempt.job_id}/attempts"
    for reason, state in (("CANCELLED_BY_USER", "stopped"), ("TIMEOUT", "failed")):
        type(attempt).objects.update(stop_reason=reason)
        (view,) = viewer.get(path).json()["results"]
        assert {s["name"]: s["state"] for s in view["stages"]}["run"] == state


def test_events_go_on_after_the_last_one_seen(member):
    job = member.post("/projects/rl/jobs", YAML, content_type="application/yaml").json()
    path = f"/projects/rl/jobs/{job['id']}"
    member.post(f"{path}/actions/cancel")
    everything = member.get(f"{path}/events").json()
    assert everything["next"] is None
    seen, after = [], 0
    while after is not None:
        page = member.get(f"{path}/events", {"after": after, "limit": 1}).json()
        seen += page["results"]
        after = page["next"]
    assert seen == everything["results"]
    assert {event["verb"] for event in seen} >= {"submit", "cancel"}


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", "limit=1001"])
def test_a_place_in_the_history_that_is_none_is_a_problem(viewer, project, query):
    job = make_job(project)
    response = viewer.get(f"/projects/rl/jobs/{job.pk}/events?{query}")
    assert_problem(response, 400, "invalid_request")


def test_events_after_a_number_beyond_all_numbers_are_none(viewer, project):
    job = make_job(project)
    response = viewer.get(f"/projects/rl/jobs/{job.pk}/events", {"after": 10**30})
    assert response.json()["results"] == []


def test_an_ended_job_is_removed_with_all_it_left(maintainer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.SUCCEEDED))
    type(attempt.cluster).objects.update(status=ClusterStatus.GONE)
    response = maintainer.delete(f"/projects/rl/jobs/{attempt.job_id}")
    assert (response.status_code, response.content) == (204, b"")
    assert Job.objects.count() == 0


def test_a_running_job_is_not_removed(maintainer, project):
    job = make_job(project, status=JobStatus.RUNNING)
    response = maintainer.delete(f"/projects/rl/jobs/{job.pk}")
    assert_problem(response, 409, "job_not_final")
