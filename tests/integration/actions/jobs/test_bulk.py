"""One action on many jobs: each is changed, unchanged or refused by itself."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from jobs.actions.jobs import bulk
from jobs.actions.jobs.bulk import BulkAction, BulkRequest, act_on_jobs, undo_of
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.hold import hold_job
from jobs.actions.jobs.prioritize import prioritize_job
from jobs.errors import PermissionDeniedError
from jobs.models import Job
from jobs.statuses import JobStatus, Role
from tests.factories import make_actor, make_job, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def maintainer(project):
    return make_actor(project, Role.MAINTAINER)


def results(outcomes):
    return {outcome.job: (outcome.result, outcome.code) for outcome in outcomes}


def test_each_job_of_a_bulk_cancel_has_an_outcome_of_its_own(project, maintainer):
    queued, running = make_job(project), make_job(project, status=JobStatus.RUNNING)
    ended = make_job(project, status=JobStatus.FAILED)
    elsewhere = make_job(make_project("other"))
    numbers = [ended.pk, queued.pk, elsewhere.pk, running.pk, queued.pk]
    outcomes = act_on_jobs(maintainer, project, BulkRequest(BulkAction.CANCEL, numbers))
    assert results(outcomes) == {
        ended.pk: ("refused", "job_already_final"),
        queued.pk: ("done", ""),
        elsewhere.pk: ("refused", "not_found"),
        running.pk: ("done", ""),
    }
    assert [outcome.job for outcome in outcomes] == numbers[:-1]
    statuses = dict(Job.objects.values_list("pk", "status"))
    assert (statuses[queued.pk], statuses[running.pk]) == ("CANCELLED", "STOPPING")
    assert statuses[elsewhere.pk] == "QUEUED"
    [again] = act_on_jobs(maintainer, project, BulkRequest(BulkAction.CANCEL, [running.pk]))
    assert again.result == "unchanged"


def test_members_act_on_their_own_jobs_and_viewers_on_none(project):
    member = make_actor(project)
    own, anothers = make_job(project, submitted_by=member.user), make_job(project)
    wanted = BulkRequest(BulkAction.HOLD, [own.pk, anothers.pk])
    assert results(act_on_jobs(member, project, wanted)) == {
        own.pk: ("done", ""),
        anothers.pk: ("refused", "permission_denied"),
    }
    with pytest.raises(PermissionDeniedError):
        act_on_jobs(make_actor(project, Role.VIEWER), project, wanted)


def test_an_undo_restores_each_job_that_was_changed_and_no_other(project, maintainer):
    jobs = [make_job(project, priority=priority) for priority in (10, 70, 90)]
    numbers = [job.pk for job in jobs]
    raised = BulkRequest(BulkAction.PRIORITIZE, numbers, dict.fromkeys(numbers, 70))
    undo = undo_of(raised.action, act_on_jobs(maintainer, project, raised))
    assert undo.priorities == {jobs[0].pk: 10, jobs[2].pk: 90}
    act_on_jobs(maintainer, project, undo)
    assert [Job.objects.get(pk=number).priority for number in numbers] == [10, 70, 90]
    Job.objects.filter(pk=numbers[0]).update(held=True)
    held = act_on_jobs(maintainer, project, BulkRequest(BulkAction.HOLD, numbers))
    undo = undo_of(BulkAction.HOLD, held)
    assert (undo.action, undo.job_ids) == (BulkAction.RELEASE, numbers[1:])


def test_an_undone_rerun_cancels_the_new_jobs_and_a_cancel_cannot_be_undone(project, maintainer):
    job = make_job(project, status=JobStatus.FAILED)
    [outcome] = act_on_jobs(maintainer, project, BulkRequest(BulkAction.RERUN, [job.pk]))
    again = Job.objects.get(rerun_of=job)
    assert outcome.new_job == again.pk
    undo = undo_of(BulkAction.RERUN, [outcome])
    assert (undo.action, undo.job_ids) == (BulkAction.CANCEL, [again.pk])
    assert undo_of(BulkAction.CANCEL, act_on_jobs(maintainer, project, undo)) is None


def test_a_bulk_delete_removes_ended_jobs_only(project, maintainer):
    ended, running = (make_job(project, status=s) for s in (JobStatus.FAILED, JobStatus.RUNNING))
    numbers = [ended.pk, running.pk]
    outcomes = act_on_jobs(maintainer, project, BulkRequest(BulkAction.DELETE, numbers))
    assert results(outcomes) == {
        ended.pk: ("done", ""),
        running.pk: ("refused", "job_not_final"),
    }
    assert list(Job.objects.values_list("pk", flat=True)) == [running.pk]


def test_an_undo_restores_what_another_request_set_during_the_action(
    project, maintainer, monkeypatch
):
    first, second = make_job(project, priority=10), make_job(project, priority=20)

    def prioritize(actor, job, priority):
        if job.pk == first.pk:
            Job.objects.filter(pk=second.pk).update(priority=30)
        return prioritize_job(actor, job, priority)

    monkeypatch.setattr(bulk, "prioritize_job", prioritize)
    numbers = [first.pk, second.pk]
    raised = BulkRequest(BulkAction.PRIORITIZE, numbers, dict.fromkeys(numbers, 70))
    undo = undo_of(raised.action, act_on_jobs(maintainer, project, raised))
    assert undo.priorities == {first.pk: 10, second.pk: 30}


def test_a_job_whose_lock_is_not_given_is_refused_and_the_others_are_changed(
    project, maintainer, monkeypatch
):
    numbers = [make_job(project).pk for _ in range(6)]
    locked = {numbers[1]}

    def hold(actor, job):
        if job.pk in locked:
            raise OperationalError("canceling statement due to lock timeout")
        return hold_job(actor, job)

    monkeypatch.setattr(bulk, "hold_job", hold)
    wanted = BulkRequest(BulkAction.HOLD, numbers)
    outcomes = act_on_jobs(maintainer, project, wanted)
    assert [outcome.result for outcome in outcomes] == ["done", "refused", *["done"] * 4]
    assert outcomes[1].code == "database_unavailable"
    locked.update(numbers[:4])
    messages = [outcome.message for outcome in act_on_jobs(maintainer, project, wanted)]
    assert [message.startswith("Not tried") for message in messages] == [False] * 3 + [True] * 3


def test_a_repeated_rerun_with_the_same_key_starts_no_second_job(project, maintainer):
    first, second = (make_job(project, status=JobStatus.FAILED) for _ in range(2))

    def rerun(*jobs, key="k", **fields):
        numbers = [job.pk for job in jobs]
        wanted = BulkRequest(BulkAction.RERUN, numbers, idempotency_key=key, **fields)
        return [(each.new_job, each.code) for each in act_on_jobs(maintainer, project, wanted)]

    made = rerun(first)
    assert rerun(first, second)[:1] == made
    assert Job.objects.filter(rerun_of__isnull=False).count() == 2
    assert rerun(first, key="other") != made
    assert rerun(first, drop_deleted=True) == [(None, "idempotency_conflict")]


def test_an_undo_restores_the_labels_that_each_job_had(project, maintainer):
    one = make_job(project, labels={"team": "rl", "old": "1"})
    other, third = make_job(project), make_job(project, labels={"team": "vision"})
    numbers = [job.pk for job in (one, other, third)]
    changes = {number: {"team": "vision", "old": None} for number in numbers}
    wanted = BulkRequest(BulkAction.LABEL, numbers, labels=changes)
    undo = undo_of(wanted.action, act_on_jobs(maintainer, project, wanted))
    assert undo.labels == {one.pk: {"team": "rl", "old": "1"}, other.pk: {"team": None}}
    act_on_jobs(maintainer, project, undo)
    assert [Job.objects.get(pk=number).labels for number in numbers] == [
        {"team": "rl", "old": "1"},
        {},
        {"team": "vision"},
    ]


def test_a_cancel_after_another_one_during_the_action_changes_nothing(
    project, maintainer, monkeypatch
):
    first, second = (make_job(project, status=JobStatus.RUNNING) for _ in range(2))

    def cancel(actor, job):
        if job.pk == first.pk:
            cancel_job(actor, Job.objects.get(pk=second.pk))
        return cancel_job(actor, job)

    monkeypatch.setattr(bulk, "cancel_job", cancel)
    wanted = BulkRequest(BulkAction.CANCEL, [first.pk, second.pk])
    outcomes = act_on_jobs(maintainer, project, wanted)
    assert [outcome.result for outcome in outcomes] == ["done", "unchanged"]
