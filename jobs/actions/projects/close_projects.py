"""Archive projects, which makes them read-only, and delete them."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from jobs.actions.accounts.rights import check_rights_on_commit
from jobs.actions.projects.keep_project import lock_alone
from jobs.actions.projects.make_project import require_no_jobs
from jobs.actions.sharing.queue_input import Reading, plan_queue_again
from jobs.audit.record import record
from jobs.errors import ConflictError
from jobs.ground import clock
from jobs.models import (
    ApiToken,
    Budget,
    Cluster,
    FormerSlug,
    HandedSecrets,
    IdempotencyKey,
    Job,
    Membership,
    Project,
    ProjectSecret,
    Quota,
    Schedule,
    StackDump,
    Upload,
    UseAccount,
)
from jobs.permissions import Actor, Verb, require
from jobs.statuses import ProjectState

# Rows that are deleted with their project.
_GOES_AT_ONCE = (
    Schedule,
    ProjectSecret,
    Upload,
    Membership,
    Quota,
    Budget,
    UseAccount,
    IdempotencyKey,
    FormerSlug,
)
# Rows of its attempts. Logs are too large for one transaction: sweeps remove them.
_GOES_OF_ATTEMPTS = (HandedSecrets, StackDump)
_ACTIVE = {"state": ProjectState.ACTIVE}
_ARCHIVED = {"state": ProjectState.ARCHIVED}


@transaction.atomic
def archive_project(actor: Actor, project: Project) -> Project:
    """Make `project` read-only and pause its schedules; do nothing if it is archived already.

    ConflictError while it has clusters, or jobs that have not ended.
    """
    _lock(actor, project)
    if project.archived_at is None:
        require_no_jobs(project, "archive")
        _require_no_clusters(project, "archive")
        project.archived_at = clock.now()
        project.save(update_fields=["archived_at"])
        Schedule.objects.filter(project=project, paused=False).update(
            paused=True,
            next_at=None,
            message=f"Paused: {actor.user.get_username()} archived the project.",
            revision=F("revision") + 1,
            updated_at=clock.now(),
        )
        record(actor, "archive_project", project, before=_ACTIVE, after=_ARCHIVED)
        plan_queue_again()
    return project


@transaction.atomic
def unarchive_project(actor: Actor, project: Project) -> Project:
    """Let `project` take jobs again; its schedules stay paused until they are resumed."""
    _lock(actor, project)
    if project.archived_at is not None:
        project.archived_at = None
        project.save(update_fields=["archived_at"])
        record(actor, "unarchive_project", project, before=_ARCHIVED, after=_ACTIVE)
        plan_queue_again()
    return project


@transaction.atomic
def delete_project(actor: Actor, project: Project, confirmation: str) -> None:
    """Delete `project` for good; `confirmation` must repeat its slug.

    Logs go with the next sweeps. Jobs, their events and costs stay visible to administrators,
    under the slug SLUG_ID. InvalidSettingsError for a wrong confirmation; ConflictError if it has
    clusters, or has jobs and is not archived.
    """
    _lock(actor, project)
    reading = Reading()
    if confirmation != project.slug:
        reading.wrong("confirm", f"Type the project's name, {project.slug}, to delete it.")
    reading.require_none()
    if project.archived_at is None and Job.objects.filter(project=project).exists():
        raise ConflictError(f"Project {project.slug} has jobs. Archive it first, then delete it.")
    _require_no_clusters(project, "delete")
    record(actor, "delete_project", project, before={"slug": project.slug})
    for user_id in project.memberships.values_list("user_id", flat=True):
        check_rights_on_commit(user_id)
    old, now = project.slug, clock.now()
    for kind in _GOES_AT_ONCE:
        kind._default_manager.filter(project=project).delete()
    for kept in _GOES_OF_ATTEMPTS:
        kept._default_manager.filter(attempt__job__project=project).delete()
    ApiToken.objects.filter(project=project).usable(now).update(revoked_at=now)
    project.slug = f"{old}_{project.pk}"
    project.archived_at, project.deleted_at = project.archived_at or now, now
    project.save(update_fields=["slug", "archived_at", "deleted_at"])
    plan_queue_again()


def _lock(actor: Actor, project: Project) -> None:
    require(actor, Verb.MANAGE_PROJECT, project)
    # Lock schedules before the project, in the order that a running schedule uses.
    list(Schedule.objects.select_for_update(no_key=True).filter(project=project).order_by("pk"))
    lock_alone(project, Verb.MANAGE_PROJECT)


def _require_no_clusters(project: Project, verb: str) -> None:
    count = Cluster.objects.existing().filter(project=project).count()
    if count:
        clusters = "a cluster" if count == 1 else f"{count} clusters"
        raise ConflictError(
            f"Project {project.slug} has {clusters}. Take them down, then {verb} the project."
        )
