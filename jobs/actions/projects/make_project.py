"""Create and rename projects."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from jobs.actions.projects.keep_project import lock_alone
from jobs.actions.sharing.queue_input import Reading, plan_queue_again, shown
from jobs.audit.record import record
from jobs.errors import ConflictError
from jobs.models import FormerSlug, Job, Membership, Project
from jobs.permissions import Actor, Verb, require, require_sharing
from jobs.statuses import Role

_LONGEST_NAME = 80


@transaction.atomic
def make_project(actor: Actor, slug: str, name: str = "") -> Project:
    """Create a project with `actor` as its first admin; its name is `slug` by default.

    InvalidSettingsError; ConflictError where there is one of that slug.
    """
    require_sharing(actor)
    _require_good(slug, name)
    project = Project(slug=slug, name=name or slug)
    _store(project)
    Membership.objects.create(project=project, user=actor.user, role=Role.ADMIN)
    record(actor, "make_project", project, after={"slug": slug, "name": project.name})
    plan_queue_again()
    return project


@transaction.atomic
def rename_project(
    actor: Actor, project: Project, slug: str | None = None, name: str | None = None
) -> Project:
    """Give `project` another slug or name; None leaves it as it is.

    The old slug leads to this project until another project takes it. InvalidSettingsError for a
    bad value. ConflictError if the new slug is taken, or jobs of the project have not ended.
    """
    require(actor, Verb.MANAGE_PROJECT, project)
    lock_alone(project, Verb.MANAGE_PROJECT)
    old, slug = project.slug, project.slug if slug is None else slug
    before = {"slug": old, "name": project.name}
    name = project.name if name is None else name or slug
    _require_good(slug, name, is_new=slug != old)
    if slug != old:
        require_no_jobs(project, "rename")
    project.slug, project.name = slug, name
    _store(project)
    if slug != old:
        FormerSlug.objects.create(slug=old, project=project)
    record(actor, "rename_project", project, before=before, after={"slug": slug, "name": name})
    plan_queue_again()
    return project


def require_no_jobs(project: Project, verb: str) -> None:
    """Raise ConflictError if a job of `project` has not ended."""
    count = Job.objects.unfinished().filter(project=project).count()
    if count:
        jobs = "1 job has" if count == 1 else f"{count} jobs have"
        raise ConflictError(
            f"{jobs} not ended in project {project.slug}. "
            f"Cancel them or wait, then {verb} the project."
        )


def _require_good(slug: str, name: str, *, is_new: bool = True) -> None:
    reading = Reading()
    if is_new:
        reading.slug(slug)
    if len(name) > _LONGEST_NAME or not name.isprintable():
        reading.wrong("name", f"{shown(name)} is no name of up to {_LONGEST_NAME} characters.")
    reading.require_none()


def _store(project: Project) -> None:
    """Save the project, and delete the former slug of any project that equals its slug."""
    taken = ConflictError(f"There is a project {project.slug} already. Choose another name.")
    if Project.objects.filter(slug=project.slug).exclude(pk=project.pk).exists():
        raise taken
    try:
        with transaction.atomic():
            project.save(update_fields=["slug", "name"] if project.pk else None)
    except IntegrityError as error:
        raise taken from error
    FormerSlug.objects.filter(slug=project.slug).delete()
