"""Arrays: one submit, many jobs, so many at once; cancelled and run again as one."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from django.db import connection

from jobs.actions.jobs.arrays import cancel_array, rerun_failed
from jobs.actions.jobs.hold import release_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import check_specs, submit_job, submit_jobs
from jobs.actions.jobs.submit_documents import submit_documents
from jobs.backends.local.backend import LocalBackend
from jobs.errors import ConflictError, InvalidSpecError, PermissionDeniedError
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.models import Job, JobArray
from jobs.models.startable_jobs import startable_jobs
from jobs.readers.job_array import job_array
from jobs.reconcilers import dependencies
from jobs.statuses import EventKind, JobStatus, Role, StopReason, WaitReason
from tests.factories import make_actor, make_project

pytestmark = pytest.mark.feature("S2.6")


@pytest.fixture
def project(db):
    return make_project("rl")


@pytest.fixture
def member(project):
    return make_actor(project, Role.MEMBER)


def sweep(**portal) -> dict:
    portal = {"array": {"lr": ["1e-4", "3e-4"], "seed": [1, 2]}, **portal}
    return {"name": "ppo", "run": "true", "resources": {"infra": "local"}, "portal": portal}


def members(job: Job) -> list[Job]:
    return list(job.array.jobs.order_by("array_index", "pk"))


def startable() -> list[int]:
    found = startable_jobs(clock.now())
    return sorted(found.values_list("array_index", flat=True))


def end(job: Job, status: JobStatus) -> None:
    job.refresh_from_db()
    if job.status == JobStatus.QUEUED:
        start(job)
    for step in (JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(job, step)
    move(job, status, reason=StopReason.COMPLETED)


def start(job: Job) -> None:
    job.refresh_from_db()
    move(job, JobStatus.PROVISIONING)


def test_one_submit_makes_a_job_for_each_combination(project, member):
    first = submit_job(member, project, sweep())
    jobs = members(first)
    assert [(job.name, job.spec["envs"]) for job in jobs] == [
        ("ppo-0", {"LR": "1e-4", "SEED": "1"}),
        ("ppo-1", {"LR": "1e-4", "SEED": "2"}),
        ("ppo-2", {"LR": "3e-4", "SEED": "1"}),
        ("ppo-3", {"LR": "3e-4", "SEED": "2"}),
    ]
    assert [job.events.get().verb for job in jobs] == ["submit"] * 4
    assert "array" not in jobs[0].spec["portal"]
    assert startable() == [0, 1, 2, 3]


def test_no_more_than_max_parallel_may_start_and_each_end_makes_room_for_one(project, member):
    jobs = members(submit_job(member, project, sweep(max_parallel=2)))
    assert (jobs[3].wait_reason, "at most 2 jobs at once" in jobs[3].message) == (
        WaitReason.PARALLEL,
        True,
    )
    assert startable() == [0, 1]
    start(jobs[0])
    assert startable() == [1]
    start(jobs[1])
    assert startable() == []
    move(jobs[1], JobStatus.RECOVERING, reason=StopReason.WORKER_LOST)
    assert startable() == []
    end(jobs[0], JobStatus.SUCCEEDED)
    assert startable() == [2]


def test_a_held_job_takes_no_place_of_those_that_may_start(project, member):
    jobs = members(submit_job(member, project, sweep(max_parallel=1)))
    Job.objects.filter(pk=jobs[0].pk).update(held=True)
    assert startable() == [1]


def test_arrays_do_not_count_for_one_another(project, member):
    submit_job(member, project, sweep(max_parallel=1))
    submit_job(member, project, sweep(max_parallel=1))
    assert startable() == [0, 0]


def test_too_many_jobs_are_refused_with_their_number(project, member):
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, sweep(array={"a": list(range(50)), "b": list(range(50))}))
    [error] = caught.value.data["errors"]
    assert (error["path"], error["code"]) == ("portal.array", "too_large")
    assert "2,500" in error["message"] and not Job.objects.exists()


def test_one_request_makes_only_so_many_jobs_of_all_its_arrays_together(project, member):
    def sources(*sizes: int) -> list[dict]:
        arrays = [sweep(array={"a": list(range(size))}) for size in sizes]
        return [{**each, "name": f"ppo-{number}"} for number, each in enumerate(arrays)]

    one = {"name": "one", "run": "true", "resources": {"infra": "local"}}
    one["portal"] = {"depends_on": []}
    text = "---\n".join(yaml.safe_dump(each) for each in [*sources(1000, 1000), one])
    with pytest.raises(InvalidSpecError) as caught:
        submit_documents(member, project, text)
    [error] = caught.value.data["errors"]
    assert (error["path"], error["code"]) == ("", "too_large")
    assert error["message"] == (
        "Together these make 2,001 jobs; at most 2,000 are taken at once. Submit them in several "
        "requests."
    )
    assert not Job.objects.exists()
    assert len(check_specs(member, project, sources(1000, 1000))) == 2
    assert len(check_specs(member, project, [*sources(1000, 999), one])) == 3


def test_cancelling_ends_all_that_have_not_ended(project, member):
    jobs = members(submit_job(member, project, sweep(max_parallel=2)))
    end(jobs[0], JobStatus.SUCCEEDED)
    start(jobs[1])
    assert cancel_array(member, jobs[0].array) == 3
    statuses = [job.status for job in members(jobs[0])]
    assert statuses == ["SUCCEEDED", "STOPPING", "CANCELLED", "CANCELLED"]
    assert startable() == []
    assert cancel_array(member, jobs[0].array) == 1


def test_others_may_not_cancel_it(project, member):
    array = submit_job(member, project, sweep()).array
    with pytest.raises(PermissionDeniedError):
        cancel_array(make_actor(project, Role.MEMBER), array)
    assert set(array.jobs.values_list("status", flat=True)) == {"QUEUED"}
    cancel_array(make_actor(project, Role.MAINTAINER), array)


def test_rerun_failed_puts_new_jobs_in_the_places_of_those_that_failed(project, member):
    jobs = members(submit_job(member, project, sweep(max_parallel=2)))
    for job, status in zip(jobs, ["SUCCEEDED", "FAILED", "SUCCEEDED", "FAILED"], strict=True):
        end(job, JobStatus(status))
    again = rerun_failed(member, jobs[0].array)
    assert [(job.array_index, job.rerun_of_id, job.name) for job in again] == [
        (1, jobs[1].pk, "ppo-1"),
        (3, jobs[3].pk, "ppo-3"),
    ]
    assert again[0].spec["envs"] == jobs[1].spec["envs"]
    view = job_array(member, "rl", jobs[0].array_id)
    assert (view.counts, view.is_final) == ({"SUCCEEDED": 2, "QUEUED": 2}, False)
    assert [row.id for row in view.jobs] == [jobs[0].pk, again[0].pk, jobs[2].pk, again[1].pk]
    with pytest.raises(ConflictError):
        rerun_failed(member, jobs[0].array)


@pytest.fixture
def requested(monkeypatch) -> list[bool]:
    """Record, for each query of the backend, whether a transaction was open meanwhile."""
    answers: list[bool] = []
    check = LocalBackend.check

    def ask(backend: LocalBackend, spec: dict) -> list[tuple[str, str]]:
        answers.append(connection.in_atomic_block)
        return check(backend, spec)

    monkeypatch.setattr(LocalBackend, "check", ask)
    return answers


@pytest.mark.django_db(transaction=True)
def test_rerun_failed_asks_the_backend_once_and_in_no_transaction(project, member, requested):
    array = submit_job(member, project, sweep()).array
    cancel_array(member, array)
    requested.clear()
    again = rerun_failed(member, array)
    assert [job.name for job in again] == ["ppo-0", "ppo-1", "ppo-2", "ppo-3"]
    assert [job.spec for job in again] == [job.rerun_of.spec for job in again]
    assert [job.spec_source for job in again] == [job.rerun_of.spec_source for job in again]
    assert requested == [False]


def test_rerun_failed_goes_by_what_has_failed_once_it_was_checked(project, member, monkeypatch):
    jobs = members(submit_job(member, project, sweep()))
    for job in jobs[:2]:
        end(job, JobStatus.FAILED)
    check = LocalBackend.check

    def meanwhile(backend: LocalBackend, spec: dict) -> list[tuple[str, str]]:
        monkeypatch.setattr(LocalBackend, "check", check)
        rerun_job(member, jobs[0])
        end(jobs[3], JobStatus.FAILED)
        return check(backend, spec)

    monkeypatch.setattr(LocalBackend, "check", meanwhile)
    again = rerun_failed(member, jobs[0].array)
    assert [job.rerun_of_id for job in again] == [jobs[1].pk, jobs[3].pk]
    for job in again:
        end(job, JobStatus.FAILED)
    monkeypatch.setattr(LocalBackend, "check", lambda *_: [("resources", "No more.")])
    with pytest.raises(InvalidSpecError):
        rerun_failed(member, jobs[0].array)
    assert Job.objects.count() == 7


def test_a_single_rerun_is_in_the_array_as_well(project, member):
    jobs = members(submit_job(member, project, sweep()))
    again = rerun_job(member, jobs[2])
    assert (again.array, again.array_index) == (jobs[0].array, 2)
    assert job_array(member, "rl", jobs[0].array_id).jobs[2].id == again.pk


def test_a_job_may_wait_for_a_whole_array_and_an_array_for_a_job(project, member):
    prepare = {"name": "prepare", "run": "true", "resources": {"infra": "local"}}
    report = {**prepare, "name": "report", "portal": {"depends_on": ["ppo"]}}
    jobs = submit_jobs(member, project, [prepare, sweep(depends_on=["prepare"]), report])
    assert [job.name for job in jobs] == ["prepare", "ppo-0", "ppo-1", "ppo-2", "ppo-3", "report"]
    assert [job.dependencies.count() for job in jobs] == [0, 1, 1, 1, 1, 4]
    end(jobs[0], JobStatus.SUCCEEDED)
    assert startable() == [0, 1, 2, 3]
    later = submit_job(member, project, {**report, "name": "later"})
    assert later.dependencies.count() == 4


def test_a_thousand_jobs_are_submitted_planned_cancelled_and_run_again_in_a_moment(
    project, member, django_assert_max_num_queries
):
    values = {"a": list(range(40)), "b": list(range(25))}
    # Neither counts what other programs of the machine take.
    begin_s = time.process_time()
    with django_assert_max_num_queries(20):
        first = submit_job(member, project, sweep(array=values, max_parallel=3))
    array = JobArray.objects.get()
    assert (startable(), array.size) == ([0, 1, 2], 1000)
    for job in members(first)[:2]:
        start(job)
    with django_assert_max_num_queries(25):
        assert cancel_array(member, array) == 1000
    counts = job_array(member, "rl", array.pk).counts
    assert counts == {"STOPPING": 2, "CANCELLED": 998}
    with django_assert_max_num_queries(25):
        assert len(rerun_failed(member, array)) == 998
    assert time.process_time() - begin_s < 10


REPORT = {"name": "report", "run": "true", "resources": {"infra": "local"}}


def needed_by(job: Job) -> list[tuple[int, str]]:
    return list(job.dependencies.order_by("needs_number").values_list("needs", "ended_as"))


def test_who_waits_for_an_array_waits_for_the_jobs_that_replace_those_that_failed(project, member):
    jobs = members(submit_job(member, project, sweep()))
    spec = {**REPORT, "portal": {"depends_on": ["ppo"], "if_dependency_fails": "run"}}
    report = submit_job(member, project, spec)
    for job in jobs[:3]:
        end(job, JobStatus.FAILED if job == jobs[1] else JobStatus.SUCCEEDED)
    [again] = rerun_failed(member, jobs[0].array)
    end(jobs[3], JobStatus.SUCCEEDED)
    dependencies.step(report.pk)
    report.refresh_from_db()
    assert not startable_jobs(clock.now()).filter(pk=report.pk).exists()
    assert report.message == f"Waits for job {again.pk} (ppo-1) to end."
    end(again, JobStatus.FAILED)
    assert list(startable_jobs(clock.now())) == [report]


def test_a_held_dependant_waits_again_once_it_is_released(project, member):
    jobs = members(submit_job(member, project, sweep(array={"seed": [1]})))
    spec = {**REPORT, "portal": {"depends_on": ["ppo"], "if_dependency_fails": "hold"}}
    report = submit_job(member, project, spec)
    end(jobs[0], JobStatus.FAILED)
    dependencies.step(report.pk)
    [again] = rerun_failed(member, jobs[0].array)
    report.refresh_from_db()
    assert (report.held, needed_by(report)) == (True, [(again.pk, "")])
    assert release_job(member, report).wait_reason == WaitReason.DEPENDENCY
    assert not startable_jobs(clock.now()).filter(pk=report.pk).exists()


def test_what_an_array_waits_for_itself_does_not_wait_for_its_new_jobs(project, member):
    submit_job(member, project, {**REPORT, "name": "prepare"})
    jobs = members(
        submit_job(member, project, sweep(depends_on=[{"job": "prepare", "after": "end"}]))
    )
    end(jobs[0], JobStatus.FAILED)
    portal = {"depends_on": ["ppo"], "if_dependency_fails": "run"}
    later = submit_job(member, project, {**REPORT, "name": "prepare", "portal": portal})
    [again] = rerun_failed(member, jobs[0].array)
    assert needed_by(again) == [(later.pk, "")]
    assert (jobs[0].pk, "FAILED") in needed_by(later)


def test_deleted_jobs_of_an_array_are_counted(project, member):
    jobs = members(submit_job(member, project, sweep()))
    end(jobs[0], JobStatus.SUCCEEDED)
    Job.objects.filter(pk=jobs[0].pk).delete()
    view = job_array(member, "rl", jobs[0].array_id)
    assert (view.size, view.counts, view.deleted) == (4, {"QUEUED": 3}, 1)


@pytest.fixture
def made_within(monkeypatch) -> set[bool]:
    """Record for each new job row whether a transaction was open when it was made."""
    seen: set[bool] = set()
    make = Job.__init__

    def see(job: Job, *columns: Any, **fields: Any) -> None:
        make(job, *columns, **fields)
        if job.pk is None:
            seen.add(connection.in_atomic_block)

    monkeypatch.setattr(Job, "__init__", see)
    return seen


@pytest.mark.django_db(transaction=True)
def test_jobs_are_written_out_before_the_transaction_that_stores_them(project, member, made_within):
    job = submit_job(member, project, sweep())
    cancel_array(member, job.array)
    rerun_failed(member, job.array)
    rerun_job(member, job)
    assert made_within == {False}


def test_cancelling_is_reported_to_dependants_and_recorded_in_the_history_of_each(project, member):
    jobs = members(submit_job(member, project, sweep()))
    report = {"name": "report", "run": "true", "resources": {"infra": "local"}}
    later = submit_job(member, project, {**report, "portal": {"depends_on": ["ppo"]}})
    start(jobs[0])
    cancel_array(member, jobs[0].array)
    ends = later.dependencies.order_by("needs_number").values_list("ended_as", flat=True)
    assert list(ends) == ["", "CANCELLED", "CANCELLED", "CANCELLED"]
    for job, moves in zip(
        members(jobs[0]), [("PROVISIONING", "STOPPING"), *[("CANCELLED",)] * 3], strict=True
    ):
        reported = job.events.filter(kind=EventKind.STATUS).order_by("pk")
        assert tuple(reported.values_list("new_status", flat=True)) == moves
        assert job.events.get(verb="cancel").message == job.message
        assert job.stop_reason == StopReason.CANCELLED_BY_USER
        assert (job.ended_at is None, job.wait_reason) == (job.status == "STOPPING", "")
