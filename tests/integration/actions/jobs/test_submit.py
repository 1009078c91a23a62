"""Submitting: every error at once, one job per key, for any caller and any number of requests."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import submit_job
from jobs.backends import registry
from jobs.errors import (
    ConflictError,
    IdempotencyConflictError,
    InvalidSpecError,
    JobNotFinalError,
    PermissionDeniedError,
)
from jobs.models import Attempt, Cluster, Job, JobEvent
from jobs.statuses import ClusterStatus, JobStatus, Role
from monarch_client.spec import JobSpec
from tests.factories import make_actor, make_attempt, make_job, make_project

HELLO = "name: hello\nrun: echo hello\nresources: {infra: local}\n"


@pytest.fixture
def project(db):
    return make_project("rl")


@pytest.fixture
def member(project):
    return make_actor(project, Role.MEMBER)


def codes(error: InvalidSpecError) -> set[str]:
    return {row["code"] for row in error.data["errors"]}


def test_a_job_is_queued_with_its_text_and_who_sent_it_from_where(project, member):
    job = submit_job(member, project, HELLO)
    assert (job.status, job.name, job.spec_source) == (JobStatus.QUEUED, "hello", HELLO)
    assert (job.backend_name, job.priority, job.num_nodes) == ("local", 50, 1)
    event = JobEvent.objects.get(job=job)
    assert (event.verb, event.actor, event.source) == ("submit", member.user, "203.0.113.7")


def count_calls(monkeypatch, owner: object, name: str) -> list[str]:
    """Return a list that grows by `name` with each call of that function, which works as before."""
    calls: list[str] = []
    real = getattr(owner, name)

    def counted(*args, **kwargs):
        calls.append(name)
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_a_submit_resolves_the_backend_once_and_serializes_the_spec_once_per_job(
    project, member, monkeypatch
):
    resolved = count_calls(monkeypatch, registry, "backend_for")
    serialized = count_calls(monkeypatch, JobSpec, "to_dict")
    submit_job(member, project, HELLO)
    assert (len(resolved), len(serialized)) == (1, 1)
    submit_job(member, project, HELLO + "portal: {array: {lr: [0.1, 0.2, 0.3]}}\n")
    # Each job of an array has a name and values of its own.
    assert (len(resolved), len(serialized)) == (2, 1 + 1 + 3)


def test_a_viewer_may_not_submit(project):
    with pytest.raises(PermissionDeniedError):
        submit_job(make_actor(project, Role.VIEWER), project, HELLO)
    assert not Job.objects.exists()


def test_all_errors_come_at_once_with_their_lines_and_nothing_is_stored(project, member):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, "nam: hello\nrun: 3\nnum_nodes: none\n")
    errors = caught.value.data["errors"]
    assert len(errors) >= 3
    assert {row["line"] for row in errors} >= {1, 3}
    assert not Job.objects.exists()


@pytest.mark.feature("S2.1")
def test_a_path_of_the_portals_host_is_refused(project, member):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, HELLO + "workdir: /etc\n")
    assert "mportal submit" in caught.value.data["errors"][0]["message"]


def test_an_upload_of_another_project_is_unknown_here(project, member):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, HELLO + f"workdir: upload:{'0' * 64}\n")
    assert codes(caught.value) == {"unknown_upload"}


def test_a_spec_that_names_another_project_is_refused(project, member):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, HELLO + "portal: {project: sft}\n")
    assert codes(caught.value) == {"wrong_project"}


def test_what_the_backend_cannot_do_is_reported_before_anything_starts(project, member):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, "name: x\nrun: x\nresources: {infra: aws}\n")
    assert codes(caught.value) == {"unsupported_by_backend"}


def test_the_same_key_and_body_give_the_same_job(project, member):
    first = submit_job(member, project, HELLO, idempotency_key="k")
    assert submit_job(member, project, HELLO, idempotency_key="k") == first
    assert submit_job(member, project, HELLO, idempotency_key="other") != first


def test_the_same_key_with_another_body_is_refused(project, member):
    submit_job(member, project, HELLO, idempotency_key="k")
    with pytest.raises(IdempotencyConflictError):
        submit_job(member, project, HELLO + "num_nodes: 2\n", idempotency_key="k")


def test_a_key_belongs_to_one_user_in_one_project(project, member):
    first = submit_job(member, project, HELLO, idempotency_key="k")
    other = make_actor(project, Role.MEMBER)
    assert submit_job(other, project, HELLO, idempotency_key="k") != first


@pytest.mark.feature("P7.2")
@pytest.mark.django_db(transaction=True)
def test_racing_requests_with_one_key_make_one_job():
    project = make_project()
    member = make_actor(project, Role.MEMBER)
    start = threading.Barrier(6)
    made: list[int] = []

    def submit() -> None:
        start.wait(timeout=10)
        made.append(submit_job(member, project, HELLO, idempotency_key="k").pk)
        connection.close()

    threads = [threading.Thread(target=submit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(made) == 6
    assert set(made) == set(Job.objects.values_list("pk", flat=True))
    assert len(set(made)) == 1


def test_a_rerun_is_a_new_job_that_names_its_origin(project, member):
    job = submit_job(member, project, HELLO)
    again = rerun_job(member, job)
    assert (again.rerun_of, again.spec, again.spec_source) == (job, job.spec, HELLO)
    assert again.pk != job.pk


def test_an_ended_job_is_deleted_with_all_its_rows(project):
    maintainer = make_actor(project, Role.MAINTAINER)
    job = make_job(project, status=JobStatus.FAILED)
    attempt = make_attempt(job)
    with pytest.raises(ConflictError, match="being terminated"):
        delete_job(maintainer, job)
    Cluster.objects.filter(pk=attempt.cluster_id).update(status=ClusterStatus.GONE)
    delete_job(maintainer, job)
    assert not Job.objects.exists()
    assert not Attempt.objects.exists()


def test_a_running_job_is_not_deleted(project):
    job = make_job(project, status=JobStatus.RUNNING)
    with pytest.raises(JobNotFinalError):
        delete_job(make_actor(project, Role.MAINTAINER), job)
