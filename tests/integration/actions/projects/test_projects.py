"""Renaming, archiving and deleting a project, and the effects on its jobs and other rows."""

from __future__ import annotations

import io
import tarfile
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from jobs.actions.jobs.submit import submit_job
from jobs.actions.projects.close_projects import archive_project, delete_project, unarchive_project
from jobs.actions.projects.make_project import make_project as make_by_action
from jobs.actions.projects.make_project import rename_project
from jobs.actions.projects.store_upload import store_upload
from jobs.actions.schedules.edit_schedules import resume_schedule
from jobs.actions.schedules.run_schedule import run_due
from jobs.actions.sharing.queue_input import InvalidSettingsError
from jobs.errors import ConflictError, NotFoundError, PermissionDeniedError
from jobs.models import (
    ApiToken,
    Cluster,
    Job,
    Membership,
    Project,
    ProjectSecret,
    Schedule,
    Upload,
)
from jobs.models.project import RESERVED_SLUGS
from jobs.permissions import Actor, Verb, project_for, projects_of, require, verbs_of
from jobs.readers.usage import usage
from jobs.statuses import ClusterStatus, JobStatus, Role, UsageBy
from tests.each_case import check_each
from tests.factories import (
    make_actor,
    make_attempt,
    make_job,
    make_project,
    make_schedule,
    make_token,
    make_user,
)

pytestmark = pytest.mark.django_db
SPEC = {"name": "hello", "run": "true", "resources": {"infra": "local"}}


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> None:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def project() -> Project:
    return make_project("rl")


@pytest.fixture
def admin(project) -> Actor:
    return make_actor(project, Role.ADMIN)


@pytest.fixture
def root() -> Actor:
    return Actor(make_user(is_superuser=True))


def ended_job(project: Project) -> Job:
    """Create a job that ran on machines which no longer exist."""
    job = make_job(project, status=JobStatus.SUCCEEDED)
    attempt = make_attempt(job, ended_at=timezone.now())
    now = timezone.now()
    gone = {"status": ClusterStatus.GONE, "gone_at": now, "billed_at": now, "usd": 5}
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        **gone, created_at=now - timedelta(minutes=5)
    )
    return job


def test_a_renamed_project_answers_under_both_names(admin, project):
    rename_project(admin, project, slug="robots", name="Robots")
    assert project_for(admin, "robots") == project_for(admin, "rl") == project
    assert Project.objects.get().name == "Robots"
    stranger = make_actor(make_project("other"))
    with pytest.raises(NotFoundError):
        project_for(stranger, "rl")


def test_a_name_that_another_project_takes_is_that_projects_alone(admin, project, root):
    rename_project(admin, project, slug="robots")
    taken = make_by_action(root, "rl")
    assert project_for(root, "rl") == taken
    with pytest.raises(NotFoundError):
        project_for(admin, "rl")


def test_a_project_can_have_its_old_name_back(admin, project):
    rename_project(admin, project, slug="robots")
    rename_project(admin, project, slug="rl")
    assert project_for(admin, "robots").slug == project_for(admin, "rl").slug == "rl"


def test_a_specification_that_names_the_project_by_its_old_name_still_fits(admin, project):
    rename_project(admin, project, slug="robots")
    job = submit_job(admin, project, {**SPEC, "portal": {"project": "rl"}})
    assert job.project == project


def test_a_name_that_is_taken_reserved_or_none_is_refused(admin, project):
    make_project("other")
    with pytest.raises(ConflictError, match="already"):
        rename_project(admin, project, slug="other")

    def check(slug: str) -> None:
        with pytest.raises(InvalidSettingsError):
            rename_project(admin, project, slug=slug)

    check_each([*RESERVED_SLUGS, "", "R L", "rl_1", "x" * 40], check)
    assert set(Project.objects.values_list("slug", flat=True)) == {"rl", "other"}


def test_a_project_with_a_job_that_has_not_ended_is_neither_renamed_nor_archived(admin, project):
    make_job(project, status=JobStatus.QUEUED)
    with pytest.raises(ConflictError, match="1 job has not ended"):
        rename_project(admin, project, slug="robots")
    with pytest.raises(ConflictError, match="1 job has not ended"):
        archive_project(admin, project)
    rename_project(admin, project, name="Robots")
    assert Project.objects.filter(slug="rl", name="Robots", archived_at=None).exists()


def test_a_project_with_a_cluster_is_neither_archived_nor_deleted(admin, project):
    Cluster.objects.create(project=project, name="mpx", backend_name="local", num_nodes=1)
    with pytest.raises(ConflictError, match="a cluster"):
        archive_project(admin, project)
    with pytest.raises(ConflictError, match="a cluster"):
        delete_project(admin, project, "rl")


def test_an_archived_project_is_read_only_for_every_role(admin, project, root):
    archive_project(admin, project)
    kept = {Verb.VIEW_PROJECT, Verb.LIST_SECRETS, Verb.MANAGE_MEMBERS, Verb.MANAGE_PROJECT}
    assert verbs_of(admin, project) == verbs_of(root, project) == kept
    with pytest.raises(PermissionDeniedError, match=r"archived\. One of its admins can unarchive"):
        submit_job(admin, project, SPEC)
    token, _ = make_token(admin.user, project=project)
    with pytest.raises(PermissionDeniedError, match="archived"):
        require(Actor(admin.user, token), Verb.SUBMIT_JOB, project)
    unarchive_project(admin, project)
    assert submit_job(admin, project, SPEC).project == project


def test_the_schedules_of_an_archived_project_are_paused_until_they_are_resumed(admin, project):
    due = timezone.now() - timedelta(minutes=1)
    schedule = make_schedule(project, owner=admin.user, next_at=due, spec=SPEC)
    archive_project(admin, project)
    assert not run_due(schedule.pk)
    schedule.refresh_from_db()
    assert schedule.paused and "archived the project" in schedule.message
    with pytest.raises(PermissionDeniedError):
        resume_schedule(admin, schedule)
    unarchive_project(admin, project)
    schedule = Schedule.objects.get()
    assert schedule.paused
    assert not resume_schedule(admin, schedule).paused


def test_what_was_begun_before_the_project_was_archived_is_refused(admin, project):
    before = Project.objects.get(pk=project.pk)
    archive_project(admin, Project.objects.get(pk=project.pk))
    assert before.archived_at is None
    with pytest.raises(PermissionDeniedError, match="archived"):
        submit_job(admin, before, SPEC)
    assert not Job.objects.exists()


def test_deleting_takes_the_projects_name_and_an_archived_or_empty_project(admin, project):
    ended_job(project)
    with pytest.raises(InvalidSettingsError, match="Type the project's name, rl"):
        delete_project(admin, project, "RL")
    with pytest.raises(ConflictError, match="Archive it first"):
        delete_project(admin, project, "rl")
    assert project_for(admin, "rl") == project
    empty = make_project("empty")
    Membership.objects.create(project=empty, user=admin.user, role=Role.ADMIN)
    delete_project(admin, empty, "empty")
    assert [each.slug for each in projects_of(admin)] == ["rl"]


def test_of_a_deleted_project_the_records_stay_for_administrators_and_nothing_else(
    admin, project, root
):
    ended_job(project)
    make_schedule(project)
    ProjectSecret.objects.create(project=project, name="A", ciphertext=b"")
    Upload.objects.create(project=project, digest="a" * 64, size_bytes=1, file_count=1)
    make_token(admin.user, project=project)
    archive_project(admin, project)
    delete_project(admin, project, "rl")
    for kind in (Schedule, ProjectSecret, Upload, Membership):
        assert not kind.objects.filter(project=project).exists(), kind
    assert not ApiToken.objects.usable(timezone.now()).exists()
    assert not projects_of(admin).exists()
    kept = project_for(root, f"rl_{project.pk}")
    assert verbs_of(root, kept) == {Verb.VIEW_PROJECT}
    today = timezone.now().date()
    by_user = usage(root, kept, today - timedelta(days=1), today, UsageBy.USER)
    assert (by_user.usd, len(by_user.rows)) == (Decimal(5), 1)
    assert Job.objects.filter(project=kept).count() == 1


def test_the_name_of_a_deleted_project_is_free_again(admin, project, root):
    delete_project(admin, project, "rl")
    made = make_by_action(root, "rl")
    assert project_for(root, "rl") == made != project


def test_nothing_is_uploaded_to_a_project_that_was_archived_meanwhile(admin, project, monkeypatch):
    def archived_meanwhile(*_: object) -> None:
        archive_project(admin, Project.objects.get(pk=project.pk))

    monkeypatch.setattr("jobs.actions.projects.keep_archive._keep", archived_meanwhile)
    with pytest.raises(PermissionDeniedError, match="archived"):
        store_upload(admin, project, [empty_archive()])
    assert not Upload.objects.exists()


def empty_archive() -> bytes:
    """Build a tar.gz with one empty file."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("a"))
    return content.getvalue()
