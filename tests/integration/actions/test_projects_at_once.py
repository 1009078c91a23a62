"""The archiving of a project against a submit at the same moment, on the real database."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from jobs.actions.close_projects import archive_project
from jobs.actions.submit import submit_job
from jobs.errors import ConflictError, PermissionDeniedError, PortalError
from jobs.models import Job, Project
from jobs.permissions import Actor
from jobs.statuses import Role
from tests.factories import make_actor, make_project
from tests.waiting import eventually, somebody_waits_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)
SPEC = {"name": "hello", "run": "true", "resources": {"infra": "local"}}


@pytest.fixture
def project() -> Project:
    return make_project("rl")


@pytest.fixture
def admin(project, monkeypatch) -> Actor:
    monkeypatch.setattr("jobs.wakeups.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return make_actor(project, Role.ADMIN)


def in_thread(call, refusals: list[PortalError]) -> threading.Thread:
    """Start `call`, and note what it is refused with."""

    def run() -> None:
        try:
            call()
        except PortalError as error:
            refusals.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_who_archives_waits_for_a_submit_and_finds_its_job(admin, project):
    refusals: list[PortalError] = []
    with transaction.atomic():
        submit_job(admin, project, SPEC)
        again = Project.objects.get(pk=project.pk)
        archiver = in_thread(lambda: archive_project(admin, again), refusals)
        assert eventually(somebody_waits_for_a_lock)
    archiver.join(30)
    assert [type(each) for each in refusals] == [ConflictError]
    assert Project.objects.get().archived_at is None


def test_a_submit_waits_for_who_archives_and_is_refused(admin, project):
    refusals: list[PortalError] = []
    with transaction.atomic():
        archive_project(admin, Project.objects.get(pk=project.pk))
        submitter = in_thread(lambda: submit_job(admin, project, SPEC), refusals)
        assert eventually(somebody_waits_for_a_lock)
    submitter.join(30)
    assert [type(each) for each in refusals] == [PermissionDeniedError]
    assert not Job.objects.exists()
