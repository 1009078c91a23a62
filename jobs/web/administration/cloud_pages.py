"""Credentials of clouds: listed, added, removed, and tried by SkyPilot."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.sharing.clouds import add_cloud, remove_cloud
from jobs.errors import (
    BackendError,
    ConflictError,
    InvalidCloudError,
    NotFoundError,
    PortalBusyError,
    StillLookingError,
)
from jobs.permissions import Actor, require_clouds
from jobs.readers.cloud_list import cloud_check, cloud_list
from jobs.web.administration.cloud_forms import FORMS
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.form_errors import accepted
from jobs.web.base.frame import render_page

_REFUSALS = (ConflictError, InvalidCloudError, PortalBusyError)


@require_http_methods(["GET", "HEAD"])
@signed_in
def clouds(request: HttpRequest, actor: Actor) -> HttpResponse:
    """List the credentials that the portal has."""
    return render_page(request, actor, "administration/clouds.html", _context(actor))


@require_POST
@signed_in
def check(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show which clouds SkyPilot can use, and why not the others."""
    context = _context(actor)
    try:
        context["report"] = {"clouds": cloud_check(actor)}
    except StillLookingError:
        context["problem"] = "SkyPilot is still checking. Check again in a moment."
    except BackendError as error:
        context["problem"] = error.message
    return render_page(request, actor, "administration/clouds.html", context)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def add(request: HttpRequest, actor: Actor, kind: str) -> HttpResponse:
    """Show the form for one kind of cloud; POST stores its credentials."""
    require_clouds(actor, to_change=True)
    if kind not in FORMS:
        raise NotFoundError(f"There is no kind {kind[:40]} of cloud.")
    form = FORMS[kind](request.POST or None)
    if (
        request.method == "POST"
        and form.is_valid()
        and accepted(form, lambda: add_cloud(actor, kind, form.values()), refusals=_REFUSALS)
    ):
        messages.success(request, f"{form.title} is added. Check whether SkyPilot can use it.")
        return redirect("web:clouds")
    context = {"tab": "clouds", "form": form, "kind": kind}
    return render_page(request, actor, "administration/cloud.html", context)


@require_POST
@signed_in
def remove(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Delete the credentials that the form names."""
    kind, name = request.POST.get("kind", ""), request.POST.get("name", "")
    return attempt_action(
        request,
        lambda: remove_cloud(actor, kind, name),
        done=f"{kind} {name} is removed.",
        back=reverse("web:clouds"),
    )


def _context(actor: Actor) -> dict[str, Any]:
    kinds = [(kind, form.title) for kind, form in FORMS.items()]
    context: dict[str, Any] = {"tab": "clouds", "kinds": kinds}
    try:
        return {**context, "entries": cloud_list(actor)}
    except ConflictError as error:
        return {**context, "entries": [], "kinds": [], "problem": error.message}
