"""Labels and notes of jobs: PATCH /projects/{slug}/jobs/{id}, and the labels of a submission."""

from __future__ import annotations

from jobs.models import Job, JobEvent
from jobs.statuses import JobStatus
from tests.factories import make_job
from tests.integration.api.conftest import assert_problem

JOBS = "/projects/rl/jobs"


def test_a_submission_sets_labels_and_a_filter_finds_them(member):
    spec = {"run": "true", "portal": {"labels": {"team": "rl", "try": 7}}}
    job = member.post(JOBS, {"spec": spec}).json()
    assert job["labels"] == {"team": "rl", "try": "7"}
    for query, count in (("team=rl,try=7", 1), ("try", 1), ("try=8", 0)):
        assert len(member.get(JOBS, {"label": query}).json()["results"]) == count, query
    too_many = {f"n{number}": "" for number in range(21)}
    for labels in ({"bad name": "x"}, {"a": "x" * 64}, {"a": "<b>"}, too_many):
        body = {"spec": {"run": "true", "portal": {"labels": labels}}}
        assert_problem(member.post(JOBS, body), 422, "invalid_spec")


def test_members_change_labels_and_the_note_of_any_job_and_others_stay(member, project):
    job = make_job(project, status=JobStatus.SUCCEEDED, labels={"team": "rl", "old": "1"})
    path = f"{JOBS}/{job.pk}"
    body = {"labels": {"old": None, "new": "2"}, "note": "bad seed"}
    answer = member.send("PATCH", path, body).json()
    assert (answer["labels"], answer["note"]) == ({"team": "rl", "new": "2"}, "bad seed")
    assert member.send("PATCH", path, {"note": ""}).json()["note"] == ""
    messages = list(JobEvent.objects.filter(job=job).values_list("message", flat=True))
    assert messages == ["Labels changed: old-, new=2.", "Note changed.", "Note removed."]


def test_labels_that_break_the_rules_are_refused_and_change_nothing(member, project):
    job = make_job(project, labels={"a": "1"})
    path = f"{JOBS}/{job.pk}"
    for labels in ({"no space": "x"}, {"a": "x" * 64}, {f"n{n}": "" for n in range(20)}):
        assert_problem(member.send("PATCH", path, {"labels": labels}), 422, "invalid_labels")
    assert_problem(member.send("PATCH", path, {"labels": "x"}), 400, "invalid_request")
    assert Job.objects.get().labels == {"a": "1"}


def test_many_jobs_are_labeled_at_once(member, project):
    numbers = [make_job(project).pk for _ in range(2)]
    body = {"action": "label", "jobs": numbers, "labels": {"team": "rl"}}
    results = member.post(f"{JOBS}/actions", body).json()["results"]
    assert [each["result"] for each in results] == ["done", "done"]
    again = member.post(f"{JOBS}/actions", body).json()["results"]
    assert [each["result"] for each in again] == ["unchanged", "unchanged"]


def test_one_request_changes_twice_as_many_labels_as_a_job_may_have_and_no_more(member, project):
    job = make_job(project, labels={f"a{n}": "" for n in range(20)})
    changes = {f"a{n}": None for n in range(20)} | {f"b{n}": "" for n in range(20)}
    too_many = {"labels": {**changes, "c": None}}
    path = f"{JOBS}/{job.pk}"
    assert_problem(member.send("PATCH", path, too_many), 422, "invalid_labels")
    assert len(member.send("PATCH", path, {"labels": changes}).json()["labels"]) == 20


def test_the_history_has_only_the_changes_of_labels_that_took_effect(member, project):
    job = make_job(project, labels={"same": "1"})
    changes = {"same": "1", "absent": None, "new": "2"}
    member.send("PATCH", f"{JOBS}/{job.pk}", {"labels": changes})
    assert JobEvent.objects.get(job=job).message == "Labels changed: new=2."
