"""Change what the admins of a project set: its names, and whether laptops may attach."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.projects.keep_project import lock_project
from jobs.actions.projects.make_project import rename_project
from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.models import Project
from jobs.permissions import Actor, Verb, require


@transaction.atomic
def change_project(
    actor: Actor,
    project: Project,
    *,
    slug: str | None = None,
    name: str | None = None,
    laptops_may_attach: bool | None = None,
) -> Project:
    """Make the changes that are given, all or none; see `rename_project` for its errors."""
    require(actor, Verb.MANAGE_PROJECT, project)
    if laptops_may_attach is not None:
        _allow_laptops(actor, project, allowed=laptops_may_attach)
    if slug is None and name is None:
        return project
    return rename_project(actor, project, slug, name)


def _allow_laptops(actor: Actor, project: Project, *, allowed: bool) -> None:
    """Set whether laptops may attach to jobs that have a driver. Otherwise their sessions end."""
    lock_project(project, Verb.MANAGE_PROJECT)
    before = {"laptops_may_attach": project.laptops_may_attach}
    project.laptops_may_attach = allowed
    project.save(update_fields=["laptops_may_attach"])
    after = {"laptops_may_attach": allowed}
    record(actor, "allow_laptops", project, before=before, after=after)
    wake_on_commit("gateway")
