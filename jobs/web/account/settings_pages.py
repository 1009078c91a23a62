"""A user's own settings: API tokens, password, times, theme."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.actions.accounts.set_password import set_password
from jobs.actions.accounts.set_time_format import set_time_format
from jobs.actions.accounts.tokens import create_token, revoke_token
from jobs.errors import InvalidZoneError
from jobs.ground import clock
from jobs.permissions import Actor, project_for
from jobs.readers.project_list import project_list
from jobs.readers.schedules import zone_names
from jobs.readers.token_list import token_list
from jobs.web.account.sign_in import safe_next
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.forms import PasswordForm, TimeForm, TokenForm
from jobs.web.base.frame import render_page

THEMES = ("system", "light", "dark")
SENT_FORMS, MOST_SENT_FORMS, MAX_KEY_LENGTH = "sent_forms", 20, 32
THEME_COOKIE_AGE = 365 * 24 * 3600


@require_safe
@signed_in
def own_settings(request: HttpRequest, actor: Actor) -> HttpResponse:
    """List the pages of settings: of the user, of the project and of the installation."""
    return render_page(request, actor, "account/settings.html", {})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def tokens(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the user's tokens. A new one appears once, in its form's answer, and is not kept."""
    slugs = [project.slug for project in project_list(actor)]
    form = TokenForm(request.POST or None, projects=slugs)
    secret = ""
    if request.method == "POST" and form.is_valid():
        if not _is_first_time(request):
            return redirect("web:tokens")
        secret = _new_token(actor, form)
        form = TokenForm(projects=slugs)
    context = {
        "form": form,
        "secret": secret,
        "tokens": token_list(actor),
        "key": secrets.token_urlsafe(8),
    }
    return render_page(request, actor, "account/tokens.html", context)


@require_POST
@signed_in
def revoke(request: HttpRequest, actor: Actor, token_id: int) -> HttpResponse:
    """End a token at once."""
    return attempt_action(
        request,
        lambda: revoke_token(actor, token_id),
        done="The token no longer works.",
        back=reverse("web:tokens"),
    )


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def password(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Change the password, or set the first one. Other sessions of the user end with it."""
    form = PasswordForm(actor.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        set_password(actor, form.cleaned_data["new_password1"])
        update_session_auth_hash(request, actor.user)
        messages.success(request, "Your password is set.")
        return redirect(safe_next(request, reverse("web:password")))
    context = {"form": form, "first": "first" in request.GET, "next": safe_next(request)}
    return render_page(request, actor, "account/password.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def time_settings(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Set the time zone and the hours in which pages show times."""
    fields = ("time_zone", "hour_format")
    known = {name: getattr(actor.user, name) for name in fields}
    form = TimeForm(request.POST or None, initial=known)
    if request.method == "POST" and form.is_valid():
        try:
            set_time_format(actor, **{name: form.cleaned_data[name] for name in fields})
        except InvalidZoneError as error:
            form.add_error("time_zone", error.message)
        else:
            messages.success(request, "Times are shown as you chose.")
            return redirect("web:time_settings")
    context = {"form": form, "zones": zone_names(), "now": clock.now()}
    status = 422 if form.errors else 200
    return render_page(request, actor, "account/time.html", context, status=status)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or the system's choice in a cookie, so that no page flashes."""
    response = redirect(safe_next(request))
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        path = settings.SESSION_COOKIE_PATH
        response.set_cookie("theme", chosen, THEME_COOKIE_AGE, path=path, samesite="Lax")
    return response


def _is_first_time(request: HttpRequest) -> bool:
    """Whether this very form was not sent before: a reload sends it again, which is no wish."""
    key = request.POST.get("key", "")[:MAX_KEY_LENGTH]
    sent = request.session.get(SENT_FORMS, [])
    if key:
        request.session[SENT_FORMS] = [*sent, key][-MOST_SENT_FORMS:]
    return not key or key not in sent


def _new_token(actor: Actor, form: TokenForm) -> str:
    data = form.cleaned_data
    project = project_for(actor, data["project"]) if data["project"] else None
    _, secret = create_token(
        actor,
        data["name"],
        project=project,
        read_only=data["read_only"],
        days=data["days"],
    )
    return secret
