"""Saved views of the job table: save one under a name, or delete it."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from django.db import transaction

from jobs.audit.record import record
from jobs.errors import ConflictError, InvalidViewError, NotFoundError
from jobs.models import Project, SavedView
from jobs.models.saved_view import NAME_LIMIT, QUERY_LIMIT
from jobs.permissions import Actor, Verb, may, require
from jobs.policies.table_queries import unknown_part

VIEW_LIMIT = 50
# The parts of the table's address that a view keeps.
_KEYS = frozenset(
    (
        *("status", "user", "kind", "gpu", "queue", "backend", "reason", "label", "since"),
        *("until", "from", "to", "name", "q", "sort", "pin"),
    )
)


def save_view(
    actor: Actor, project: Project, name: str, query: str, *, is_shared: bool = False
) -> SavedView:
    """Save `query`, as in the table's address, as the actor's view of this name.

    A view of the actor with the same name is replaced. InvalidViewError: no usable name or query.
    ConflictError: the actor has VIEW_LIMIT views already.
    """
    require(actor, Verb.LABEL_JOB, project)
    name, query = " ".join(name.replace("\0", "").split()), kept_query(query)
    if not 1 <= len(name) <= NAME_LIMIT:
        raise InvalidViewError(f"Give the view a name of 1 to {NAME_LIMIT} characters.")
    if not 1 <= len(query) <= QUERY_LIMIT:
        raise InvalidViewError("Choose a filter or an order first; there is nothing to save.")
    if problem := unknown_part(parse_qsl(query)):
        raise InvalidViewError(problem)
    own = SavedView.objects.filter(project=project, owner=actor.user)
    with transaction.atomic():
        before = own.filter(name=name).first()
        if before is None and own.count() >= VIEW_LIMIT:
            raise ConflictError(f"You have {VIEW_LIMIT} views in this project: delete one first.")
        values = {"query": query, "is_shared": is_shared}
        view, _ = SavedView.objects.update_or_create(
            project=project, owner=actor.user, name=name, defaults=values
        )
        was = {"query": before.query, "is_shared": before.is_shared} if before else None
        record(actor, "save_view", view, before=was, after=values)
    return view


def delete_view(actor: Actor, project: Project, view_id: int) -> None:
    """Delete a view of the actor, or as an admin a shared one. NotFoundError if there is none."""
    require(actor, Verb.LABEL_JOB, project)
    view = SavedView.objects.filter(project=project, pk=view_id).first()
    is_own = view is not None and view.owner_id == actor.user.pk
    may_delete = view is not None and view.is_shared and may(actor, Verb.MANAGE_PROJECT, project)
    if view is None or not (is_own or may_delete):
        raise NotFoundError(f"You have no view {view_id} in project {project.slug}.")
    with transaction.atomic():
        record(actor, "delete_view", view, before={"query": view.query})
        view.delete()


def kept_query(query: str) -> str:
    """Return the parts of a query that a view keeps, in their order."""
    try:
        parts = parse_qsl(query.replace("\0", ""), max_num_fields=100)
    except ValueError as error:
        raise InvalidViewError("The query has too many parts.") from error
    return urlencode([(key, value) for key, value in parts if key in _KEYS], safe=",")
