"""Making projects."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.queue_input import Reading, shown, tell_change
from jobs.errors import ConflictError
from jobs.models import Membership, Project
from jobs.permissions import Actor, require_sharing
from jobs.statuses import Role

_LONGEST_NAME = 80


@transaction.atomic
def make_project(actor: Actor, slug: str, name: str = "") -> Project:
    """A project without jobs, with `actor` as its first admin; its name is `slug` by default.

    InvalidSettingsError; ConflictError where there is one of that slug.
    """
    require_sharing(actor)
    reading = Reading()
    reading.slug(slug)
    if len(name) > _LONGEST_NAME or not name.isprintable():
        reading.wrong("name", f"{shown(name)} is no name of up to {_LONGEST_NAME} characters.")
    reading.require_none()
    project, is_new = Project.objects.get_or_create(slug=slug, defaults={"name": name or slug})
    if not is_new:
        raise ConflictError(f"There is a project {slug} already.")
    Membership.objects.create(project=project, user=actor.user, role=Role.ADMIN)
    tell_change("make_project", actor, slug)
    return project
