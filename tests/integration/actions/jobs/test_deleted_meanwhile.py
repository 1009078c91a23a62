"""Requests about a job that another user deletes at the same time: 404, not an internal error."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.errors import NotFoundError
from jobs.models import Job
from jobs.permissions import Actor
from jobs.statuses import ClusterStatus, JobStatus, Role
from tests.factories import make_actor, make_attempt, make_job, make_project

Action = Callable[[Actor, Job], object]
ACTIONS = [cancel_job, delete_job, hold_job, release_job, rerun_job]


def ended_job() -> tuple[Actor, Job]:
    project = make_project()
    job = make_job(project, status=JobStatus.CANCELLED)
    attempt = make_attempt(job)
    type(attempt.cluster).objects.update(status=ClusterStatus.GONE)
    return make_actor(project, Role.MAINTAINER), job


@pytest.mark.django_db
@pytest.mark.parametrize("action", ACTIONS)
def test_a_request_about_a_job_that_was_deleted_recently_is_not_found(action: Action):
    actor, job = ended_job()
    as_read_before = Job.objects.get(pk=job.pk)
    delete_job(actor, job)
    with pytest.raises(NotFoundError):
        action(actor, as_read_before)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", [delete_job, rerun_job])
def test_a_deletion_and_another_request_at_once_end_as_one_after_the_other(action: Action):
    actor, job = ended_job()
    both_ready = Barrier(2)

    def ask(what: Action) -> str:
        read = Job.objects.get(pk=job.pk)
        both_ready.wait()
        try:
            what(actor, read)
        except NotFoundError:
            return "not found"
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(ask, [delete_job, action]))
    assert said in (["done", "not found"], ["not found", "done"], ["done", "done"])
    # A rerun may come first, and stays; a second deletion finds nothing.
    assert Job.objects.count() == (1 if (action, said[1]) == (rerun_job, "done") else 0)
    assert said.count("done") == 1 or action is rerun_job
