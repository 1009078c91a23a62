"""The limits of a project, and those that are in force with the installation's own."""

from __future__ import annotations

from jobs.limits import duration_limit, idle_limit
from jobs.models import Project
from jobs.permissions import Actor, Verb, may_change_installation, require
from monarch_client.wire.projects import ProjectLimits


def project_limits(actor: Actor, project: Project) -> ProjectLimits:
    """Return the limits of `project`."""
    require(actor, Verb.VIEW_PROJECT, project)
    longest, idle = duration_limit(project), idle_limit(project)
    return ProjectLimits(
        max_duration_s=project.max_duration_s,
        max_idle_minutes=project.max_idle_minutes,
        duration_in_force_s=longest.value if longest else None,
        idle_in_force_minutes=idle.value if idle else None,
        weight=project.share_weight,
        may_set=may_change_installation(actor),
    )
