"""The saved views of a project's job table that a user sees."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse

from jobs.models import Project, SavedView
from jobs.permissions import Actor, Verb, require, verbs_of
from monarch_client.wire import views as wire


def saved_views(actor: Actor, project: Project) -> list[wire.SavedView]:
    """List the actor's own views and those that others share, by name."""
    verbs = verbs_of(actor, project)
    if Verb.VIEW_PROJECT not in verbs:
        require(actor, Verb.VIEW_PROJECT, project)
    rows = SavedView.objects.filter(Q(owner=actor.user) | Q(is_shared=True), project=project)
    manages = Verb.MANAGE_PROJECT in verbs
    ordered = rows.select_related("owner").order_by("name", "pk")
    return [view_answer(actor, project, row, manages=manages) for row in ordered]


def view_answer(
    actor: Actor, project: Project, view: SavedView, *, manages: bool = False
) -> wire.SavedView:
    """Return one view; `manages`: the actor may delete shared ones of others."""
    return wire.SavedView(
        id=view.pk,
        name=view.name,
        query=view.query,
        is_shared=view.is_shared,
        owner=view.owner.get_username(),
        can_delete=manages or view.owner_id == actor.user.pk,
        url=f"{reverse('web:jobs', args=[project.slug])}?{view.query}",
    )
