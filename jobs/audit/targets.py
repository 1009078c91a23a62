"""Describe the object that an audit entry is about."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Model

from jobs.models import (
    ApiToken,
    Cluster,
    Job,
    JobArray,
    Membership,
    Pool,
    Project,
    ProjectSecret,
    Queue,
    Quota,
    SavedView,
    Schedule,
    StrayCluster,
    TemplateVersion,
    Upload,
    User,
)

_KINDS: dict[type[Model], str] = {
    ApiToken: "token",
    Cluster: "cluster",
    Job: "job",
    JobArray: "array",
    Pool: "pool",
    Project: "project",
    ProjectSecret: "secret",
    Queue: "queue",
    Quota: "quota",
    SavedView: "view",
    Schedule: "schedule",
    StrayCluster: "cluster",
    TemplateVersion: "template",
    Upload: "upload",
    User: "user",
}


@dataclass(frozen=True, slots=True)
class Target:
    """An object that changes: its kind, id and name, and the project that it belongs to."""

    kind: str
    name: str
    id: str = ""
    project: Project | None = None


def target_of(row: Model) -> Target:
    """Return the target that a row is. Call it before the row is deleted, which takes its id."""
    project = row if isinstance(row, Project) else getattr(row, "project", None)
    if isinstance(row, Membership):
        return Target("member", row.user.get_username(), str(row.user_id), project)
    name = row.slug if isinstance(row, Project) else str(getattr(row, "name", row))
    # A session's user is a proxy, whose type() is not that of the row.
    return Target(_KINDS[row.__class__], name, str(row.pk), project)
