"""Users of the installation: the list, invitations, and the page of one user."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.accounts.change_user import change_user, end_sessions
from jobs.actions.accounts.sign_in_links import Link, replace_sign_in_link
from jobs.actions.projects.invite_user import invite_user
from jobs.errors import ConflictError
from jobs.permissions import Actor, require_users
from jobs.readers.project_list import project_list
from jobs.readers.user_list import STATES, session_list, user_list, user_view
from jobs.statuses import Role
from jobs.web.administration.user_forms import InviteForm, LinkForm
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.frame import render_page

_MOST_CHARS = 150


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def users(request: HttpRequest, actor: Actor) -> HttpResponse:
    """List users; POST invites one. The link appears once, in the answer to its form."""
    require_users(actor)
    slugs = [project.slug for project in project_list(actor)]
    form = InviteForm(request.POST or None, projects=slugs)
    link = _invited(actor, form) if request.method == "POST" and form.is_valid() else None
    search, after = (_text(request, name) for name in ("q", "after"))
    state = request.GET.get("state", "all")
    state = state if state in STATES else "all"
    context = {
        "tab": "users",
        "form": form if link is None else InviteForm(projects=slugs),
        "link": link and _shown(request, link),
        "found": user_list(actor, search=search, state=state, after=after),
        "search": search,
        "state": state,
        "states": STATES,
        "after": after,
    }
    return render_page(request, actor, "administration/users.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def user(request: HttpRequest, actor: Actor, username: str) -> HttpResponse:
    """Show a user; POST creates a sign-in link, which appears once."""
    require_users(actor)
    form = LinkForm(request.POST or None)
    link = None
    if request.method == "POST" and form.is_valid():
        try:
            link = replace_sign_in_link(actor, username, hours=form.cleaned_data["hours"])
        except ConflictError as error:
            form.add_error("hours", error.message)
    context = {
        "tab": "users",
        "user_row": user_view(actor, username),
        "sessions": session_list(actor, username, request.session.session_key),
        "form": form if link is None else LinkForm(),
        "link": link and _shown(request, link),
        "is_self": username == actor.user.get_username(),
    }
    return render_page(request, actor, "administration/user.html", context)


@require_POST
@signed_in
def change(request: HttpRequest, actor: Actor, username: str) -> HttpResponse:
    """Disable or enable a user, or set whether they administer the installation."""
    wanted = request.POST.get("change", "")
    changes: dict[str, tuple[dict[str, bool], str]] = {
        "disable": ({"is_active": False}, f"{username} is disabled."),
        "enable": ({"is_active": True}, f"{username} may sign in again."),
        "grant": ({"is_admin": True}, f"{username} administers this installation."),
        "revoke": ({"is_admin": False}, f"{username} no longer administers this installation."),
    }
    require_users(actor, to_change=True)
    back = reverse("web:user", args=[username])
    if wanted not in changes:
        return redirect(back)
    values, done = changes[wanted]
    return attempt_action(
        request, lambda: change_user(actor, username, **values), done=done, back=back
    )


@require_POST
@signed_in
def end(request: HttpRequest, actor: Actor, username: str) -> HttpResponse:
    """End one session of a user, or all of them."""
    require_users(actor, to_change=True)
    return _end(request, actor, username, reverse("web:user", args=[username]))


@never_cache
@require_http_methods(["GET", "HEAD"])
@signed_in
def own_sessions(request: HttpRequest, actor: Actor) -> HttpResponse:
    """List the browsers in which the user of the request is signed in."""
    rows = session_list(actor, "me", request.session.session_key)
    return render_page(request, actor, "account/sessions.html", {"sessions": rows})


@require_POST
@signed_in
def end_own(request: HttpRequest, actor: Actor) -> HttpResponse:
    """End a session of the user of the request, or all of them."""
    return _end(request, actor, "me", reverse("web:sessions"))


def _end(request: HttpRequest, actor: Actor, username: str, back: str) -> HttpResponse:
    one = request.POST.get("session") or None
    done = "The session has ended." if one else "All sessions have ended."
    return attempt_action(request, lambda: end_sessions(actor, username, one), done=done, back=back)


def _invited(actor: Actor, form: InviteForm) -> Link | None:
    """Return the link of a new user; None, with the error in the form, if it was refused."""
    data: dict[str, Any] = form.cleaned_data
    try:
        return invite_user(
            actor,
            data["username"],
            hours=data["hours"],
            project=data["project"],
            role=Role(data["role"]),
        )
    except ConflictError as error:
        form.add_error("username", error.message)
        return None


def _shown(request: HttpRequest, link: Link) -> dict[str, Any]:
    path = reverse("web:sign_in_once", args=[link.secret])
    return {
        "username": link.user.get_username(),
        "url": request.build_absolute_uri(path),
        "expires_at": link.expires_at,
    }


def _text(request: HttpRequest, name: str) -> str:
    # The database takes no NUL.
    return request.GET.get(name, "").replace("\0", "")[:_MOST_CHARS]
