"""A project as it is now, kept so until the transaction ends."""

from __future__ import annotations

from jobs.models import Project
from jobs.permissions import Verb, require_open

# Of its row, what decides what can be done in it.
_STATE = ("archived_at", "deleted_at")
# It waits for nobody but who archives or deletes the project, and holds up nobody else.
_SHARED = "SELECT id, archived_at, deleted_at FROM jobs_project WHERE id = %s FOR KEY SHARE"


def keep_open(project: Project, verb: Verb) -> None:
    """Have nobody archive or delete `project` before this transaction ends.

    PermissionDeniedError: somebody has, and `verb` cannot be done there any more.
    """
    for row in Project.objects.raw(_SHARED, [project.pk]):
        _take_state(project, row)
    require_open(project, verb)


def lock_project(project: Project, verb: Verb) -> None:
    """Have changes of `project` that count its rows go one by one, until this transaction ends.

    PermissionDeniedError: it was archived or deleted meanwhile, which closes `verb`.
    """
    _take_state(project, Project.objects.select_for_update(no_key=True).get(pk=project.pk))
    require_open(project, verb)


def lock_alone(project: Project, verb: Verb) -> None:
    """As `lock_project`; and have nothing be made in `project` meanwhile, such as a job.

    Its names are those of now as well: somebody may have renamed it.
    """
    row = Project.objects.select_for_update().get(pk=project.pk)
    _take_state(project, row)
    project.slug, project.name = row.slug, row.name
    require_open(project, verb)


def _take_state(project: Project, row: Project) -> None:
    for field in _STATE:
        setattr(project, field, getattr(row, field))
