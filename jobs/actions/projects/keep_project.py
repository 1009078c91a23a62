"""Lock a project's state until the transaction ends."""

from __future__ import annotations

from jobs.models import Project
from jobs.permissions import Verb, require_open

# Columns that decide which operations the project allows.
_STATE = ("archived_at", "deleted_at")
# This lock conflicts only with changes that lock the whole project, such as archiving it.
_SHARED = "SELECT id, archived_at, deleted_at FROM jobs_project WHERE id = %s FOR KEY SHARE"


def keep_open(project: Project, verb: Verb) -> None:
    """Keep `project` from being archived or deleted until this transaction ends.

    PermissionDeniedError: it was archived or deleted already, which forbids `verb`.
    """
    for row in Project.objects.raw(_SHARED, [project.pk]):
        _take_state(project, row)
    require_open(project, verb)


def lock_project(project: Project, verb: Verb) -> None:
    """Serialize changes that count the rows of `project` until this transaction ends.

    PermissionDeniedError: it was archived or deleted meanwhile, which forbids `verb`.
    """
    _take_state(project, Project.objects.select_for_update(no_key=True).get(pk=project.pk))
    require_open(project, verb)


def lock_alone(project: Project, verb: Verb) -> None:
    """Lock `project` as `lock_project` does, and also against new rows in it, such as jobs.

    Reads its names again: it may have been renamed meanwhile.
    """
    row = Project.objects.select_for_update().get(pk=project.pk)
    _take_state(project, row)
    project.slug, project.name = row.slug, row.name
    require_open(project, verb)


def _take_state(project: Project, row: Project) -> None:
    for field in _STATE:
        setattr(project, field, getattr(row, field))
