"""Changes of a project against a submit or each other at one moment, on the real database."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from jobs.actions.jobs.submit import submit_job
from jobs.actions.projects.close_projects import archive_project, delete_project
from jobs.actions.projects.make_project import rename_project
from jobs.actions.sharing.queue_input import InvalidSettingsError
from jobs.errors import ConflictError, PermissionDeniedError, PortalError
from jobs.models import FormerSlug, Job, Project
from jobs.permissions import Actor
from jobs.statuses import Role
from tests.factories import make_actor, make_project
from tests.waiting import a_process_waits_for_a_lock, eventually

pytestmark = pytest.mark.django_db(transaction=True)
SPEC = {"name": "hello", "run": "true", "resources": {"infra": "local"}}


@pytest.fixture
def project() -> Project:
    return make_project("rl")


@pytest.fixture
def admin(project, monkeypatch) -> Actor:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return make_actor(project, Role.ADMIN)


def in_thread(call, refusals: list[PortalError]) -> threading.Thread:
    """Start `call`, and record its refusal."""

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
        assert eventually(a_process_waits_for_a_lock)
    archiver.join(30)
    assert [type(each) for each in refusals] == [ConflictError]
    assert Project.objects.get().archived_at is None


def test_a_submit_waits_for_who_archives_and_is_refused(admin, project):
    refusals: list[PortalError] = []
    with transaction.atomic():
        archive_project(admin, Project.objects.get(pk=project.pk))
        submitter = in_thread(lambda: submit_job(admin, project, SPEC), refusals)
        assert eventually(a_process_waits_for_a_lock)
    submitter.join(30)
    assert [type(each) for each in refusals] == [PermissionDeniedError]
    assert not Job.objects.exists()


def after_a_rename(admin: Actor, project: Project, call) -> list[type[PortalError]]:
    """Rename it to `robots` while `call` waits for it; return the refusals of `call`."""
    refusals: list[PortalError] = []
    with transaction.atomic():
        rename_project(admin, Project.objects.get(pk=project.pk), "robots")
        other = in_thread(call, refusals)
        assert eventually(a_process_waits_for_a_lock)
    other.join(30)
    return [type(each) for each in refusals]


@pytest.mark.parametrize(("slug", "name"), [("arms", None), (None, "Robot arms")])
def test_the_second_rename_begins_with_the_name_that_the_first_has_given(
    admin, project, slug, name
):
    assert after_a_rename(admin, project, lambda: rename_project(admin, project, slug, name)) == []
    former = set(FormerSlug.objects.values_list("slug", flat=True))
    assert Project.objects.get().slug == (slug or "robots")
    assert former == ({"rl", "robots"} if slug else {"rl"})


def test_a_project_is_deleted_by_the_name_that_it_has_then_alone(admin, project):
    refusals = after_a_rename(admin, project, lambda: delete_project(admin, project, "rl"))
    assert refusals == [InvalidSettingsError]
    assert Project.objects.get().deleted_at is None
