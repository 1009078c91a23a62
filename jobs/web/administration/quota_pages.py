"""Quotas, and the weights of projects: set by administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.projects.make_project import make_project
from jobs.actions.sharing.queue_input import InvalidSettingsError
from jobs.actions.sharing.quotas import Whose, delete_quota, set_quota, set_weight
from jobs.errors import ConflictError, NotFoundError
from jobs.permissions import Actor, require_sharing
from jobs.readers.project_list import project_list, project_weights
from jobs.readers.queue_state import QueueState
from jobs.web.administration.sharing_forms import (
    NewProjectForm,
    QuotaAmountsForm,
    QuotaForm,
    WeightForm,
)
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.form_errors import accepted
from jobs.web.base.frame import render_page
from monarch_client.spec.amounts import text_of
from monarch_client.wire.queue import Quota

_SCOPE = ("queue", "project", "user", "per_person", "pool")


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def quotas(request: HttpRequest, actor: Actor) -> HttpResponse:
    """List the quotas; POST creates one."""
    require_sharing(actor)
    state = QueueState(actor)
    rows = state.quotas()
    form = QuotaForm(
        request.POST or None,
        queues=[row.name for row in state.queues()],
        projects=[row.slug for row in project_list(actor)],
        pools=[row.name for row in state.pools() if row.kind == "pool"],
    )
    if request.method == "POST" and form.is_valid():
        whose = Whose(**{key: form.cleaned_data[key] for key in _SCOPE})
        try:
            if _is_set(actor, form, whose, must_be_new=True):
                messages.success(request, "The quota is set.")
                return redirect("web:admin_quotas")
        except ConflictError:
            _link_to_quota(form, QueueState(actor).quotas(), whose)
    context = {"tab": "quotas", "rows": rows, "form": form}
    return render_page(request, actor, "administration/quotas.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def quota(request: HttpRequest, actor: Actor, quota_id: int) -> HttpResponse:
    """Show the amounts of one quota; POST sets others."""
    require_sharing(actor)
    row = next((row for row in QueueState(actor).quotas() if row.id == quota_id), None)
    if row is None:
        raise NotFoundError(f"There is no quota {quota_id}.")
    form = QuotaAmountsForm(request.POST or None, initial=_values(row))
    if row.kind != "project":
        del form.fields["nominal"]
    whose = _whose(row)
    if request.method == "POST" and form.is_valid() and _is_set(actor, form, whose):
        messages.success(request, "The quota is set.")
        return redirect("web:admin_quotas")
    context = {"tab": "quotas", "quota": row, "form": form}
    return render_page(request, actor, "administration/quota.html", context)


@require_POST
@signed_in
def remove_quota(request: HttpRequest, actor: Actor, quota_id: int) -> HttpResponse:
    """Delete a quota."""
    return attempt_action(
        request,
        lambda: delete_quota(actor, quota_id),
        done="The quota is deleted.",
        back=reverse("web:admin_quotas"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def projects(request: HttpRequest, actor: Actor) -> HttpResponse:
    """List all projects with their weights; POST creates one."""
    require_sharing(actor)
    form = NewProjectForm(request.POST or None)
    if (
        request.method == "POST"
        and form.is_valid()
        and accepted(form, lambda: make_project(actor, **form.cleaned_data))
    ):
        slug = form.cleaned_data["slug"]
        messages.success(request, f"Project {slug} is created. Add its members here.")
        return redirect("web:members", slug=slug)
    rows = project_list(actor)
    weights = project_weights(actor)
    context = {
        "tab": "projects",
        "rows": [(row, weights[row.slug]) for row in rows],
        "form": form,
    }
    return render_page(request, actor, "administration/projects.html", context)


@require_POST
@signed_in
def weight(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Set the weight of a project."""
    require_sharing(actor)
    form = WeightForm(request.POST)
    back = reverse("web:admin_projects")
    if not form.is_valid():
        messages.error(request, f"Weight of {slug}: enter a number from 0.001 to 1000.")
        return redirect(back)
    number = form.cleaned_data["weight"]
    return attempt_action(
        request,
        lambda: set_weight(actor, slug, number),
        done=f"Project {slug} has the weight {number:g}.",
        back=back,
    )


def _whose(row: Quota) -> Whose:
    return Whose(row.queue, row.project, row.user, row.kind == "each_person", row.pool)


def _link_to_quota(form: QuotaForm, rows: list[Quota], whose: Whose) -> None:
    """Link from the form of a new quota to the one that its scope has."""
    taken = next((row for row in rows if _whose(row) == whose), None)
    if taken is None:
        form.add_error(None, "This scope had a quota until just now. Try again.")
        return
    link = format_html(
        'This scope has a quota already. <a href="{}">Change quota {}</a>',
        reverse("web:admin_quota", args=[taken.id]),
        taken.id,
    )
    form.add_error("queue" if taken.queue else "project", link)


def _is_set(
    actor: Actor, form: QuotaAmountsForm, whose: Whose, *, must_be_new: bool = False
) -> bool:
    # Of a queue, a person or each person there is no nominal share.
    caps, nominal = form.cleaned_data["caps"], form.cleaned_data.get("nominal") or {}
    return accepted(
        form,
        lambda: set_quota(actor, whose, caps, nominal, must_be_new=must_be_new),
        refusals=(InvalidSettingsError,),
        field="caps",
    )


def _values(row: Quota) -> dict[str, Any]:
    caps = {each.what: each.cap for each in row.amounts if each.cap is not None}
    nominal = {each.what: each.nominal for each in row.amounts if each.nominal is not None}
    return {"caps": text_of(caps), "nominal": text_of(nominal)}
