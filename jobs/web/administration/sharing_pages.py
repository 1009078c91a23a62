"""Queues and pools: listed, created, changed and deleted by administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.sharing.pools import PoolChange, delete_pool, set_pool
from jobs.actions.sharing.queues import QueueChange, delete_queue, set_queue
from jobs.errors import NotFoundError
from jobs.permissions import Actor, require_sharing
from jobs.readers.queue_state import QueueState
from jobs.web.administration.sharing_forms import PoolForm, QueueForm
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.form_errors import accepted
from jobs.web.base.frame import render_page
from monarch_client.spec.amounts import text_of
from monarch_client.spec.durations import text_of as length_of
from monarch_client.wire.queue import Place, Queue

_METHODS = ["GET", "HEAD", "POST"]


@require_http_methods(_METHODS)
@signed_in
def queues(request: HttpRequest, actor: Actor, name: str | None = None) -> HttpResponse:
    """List the queues; POST creates one, or changes the one that the address names."""
    require_sharing(actor)
    state = QueueState(actor)
    rows = state.queues()
    changed = _named(rows, name, "queue")
    initial = _queue_values(changed) if changed else None
    pools = [row.name for row in state.pools() if row.kind == "pool"]
    form = QueueForm(request.POST or None, initial=initial, pools=pools, is_new=changed is None)
    if request.method == "POST" and form.is_valid():
        chosen = name or form.cleaned_data.pop("name")
        change = QueueChange(**form.cleaned_data)
        if not _is_taken(form, rows, chosen, changed) and accepted(
            form, lambda: set_queue(actor, chosen, change)
        ):
            messages.success(request, f"Queue {chosen} is set.")
            return redirect("web:admin_queues")
    context = {"tab": "queues", "rows": rows, "form": form, "changed": changed}
    return render_page(request, actor, "administration/queues.html", context)


@require_POST
@signed_in
def remove_queue(request: HttpRequest, actor: Actor, name: str) -> HttpResponse:
    """Delete a queue with its quotas."""
    return attempt_action(
        request,
        lambda: delete_queue(actor, name),
        done=f"Queue {name} is deleted.",
        back=reverse("web:admin_queues"),
    )


@require_http_methods(_METHODS)
@signed_in
def pools(request: HttpRequest, actor: Actor, name: str | None = None) -> HttpResponse:
    """List the pools; POST creates one, or changes the one that the address names."""
    require_sharing(actor)
    places = QueueState(actor).pools()
    rows = [row for row in places if row.kind == "pool"]
    changed = _named(rows, name, "pool")
    initial = _pool_values(changed) if changed else None
    backends = [row.name for row in places if row.kind == "backend"]
    form = PoolForm(
        request.POST or None, initial=initial, backends=backends, is_new=changed is None
    )
    if request.method == "POST" and form.is_valid():
        chosen = name or form.cleaned_data.pop("name")
        change = PoolChange(**form.cleaned_data)
        if not _is_taken(form, rows, chosen, changed) and accepted(
            form, lambda: set_pool(actor, chosen, change)
        ):
            messages.success(request, f"Pool {chosen} is set.")
            return redirect("web:admin_pools")
    context = {"tab": "pools", "rows": rows, "form": form, "changed": changed}
    return render_page(request, actor, "administration/pools.html", context)


@require_POST
@signed_in
def remove_pool(request: HttpRequest, actor: Actor, name: str) -> HttpResponse:
    """Delete a pool with its own quotas."""
    return attempt_action(
        request,
        lambda: delete_pool(actor, name),
        done=f"Pool {name} is deleted.",
        back=reverse("web:admin_pools"),
    )


def _named(rows: list[Any], name: str | None, kind: str) -> Any:
    """Return the row of that name, None without a name. NotFoundError: there is no such row."""
    if name is None:
        return None
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        raise NotFoundError(f"There is no {kind} {name}.")
    return row


def _is_taken(
    form: QueueForm | PoolForm, rows: list[Any], name: str, changed: Queue | Place | None
) -> bool:
    """Whether a new row has the name of another one, which the form then says."""
    if changed is not None or all(row.name != name for row in rows):
        return False
    form.add_error("name", f"There is one named {name} already. Change it in the list.")
    return True


def _queue_values(row: Queue) -> dict[str, Any]:
    return {"rank": row.rank, "pool": row.pool, "preemptible": row.preemptible}


def _pool_values(row: Place) -> dict[str, Any]:
    caps = {each.what: each.cap for each in row.amounts if each.cap is not None}
    return {
        "backend": row.backend,
        "caps": text_of(caps),
        "patience": length_of(row.patience_s),
        "half_life": length_of(row.half_life_s),
        "reclaim": row.reclaim,
        "preempts_by_rank": row.preempts_by_rank,
    }
