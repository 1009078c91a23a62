"""Causes as one reader may know them: jobs of projects that they do not see have no number."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.models import Job
from jobs.permissions import Actor, projects_of
from jobs.scheduling.causes import Cause


def visible_causes(actor: Actor, causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes in their order as the actor may read them; the jobs in one query."""
    named = {number for cause in causes for number in cause.named}
    known: set[int] = set()
    if named:
        seen = Job.objects.filter(pk__in=named, project__in=projects_of(actor))
        known = set(seen.values_list("pk", flat=True))
    return [cause.visible_to(known.__contains__) for cause in causes]
