"""The diagnosis of a job's last attempt, as lists of jobs show it."""

from __future__ import annotations

from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KeyTextTransform

from jobs.models import Attempt


def diagnosis_title() -> Subquery:
    """Return the title of the diagnosis of a job's newest attempt, for a query of jobs."""
    newest = Attempt.objects.filter(job=OuterRef("pk")).order_by("-number")
    return Subquery(newest.values(title=KeyTextTransform("title", "diagnosis"))[:1])
