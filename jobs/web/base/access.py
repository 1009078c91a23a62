"""The way into a page: who asks, and how the portal's errors leave as pages.

What the actor may do is decided by actions and readers, through `jobs.permissions`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from jobs.errors import NotFoundError, PermissionDeniedError, PortalError
from jobs.models import User
from jobs.models.user_session import browser_of
from jobs.permissions import Actor
from jobs.web.base.frame import render_page

P = ParamSpec("P")
PageView = Callable[Concatenate[HttpRequest, Actor, P], HttpResponse]


def signed_in(view: PageView[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Hand `view` the actor; send users who are not signed in to the sign-in page and back.

    NotFoundError becomes the 404 page, PermissionDeniedError the 403 page.
    """

    @wraps(view)
    def page(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        actor = actor_of(request)
        try:
            return view(request, actor, *args, **kwargs)
        except (NotFoundError, Http404) as error:
            return render_page(request, actor, "404.html", {"exception": str(error)}, status=404)
        except PermissionDeniedError as error:
            context = {"exception": error.message}
            return render_page(request, actor, "403.html", context, status=403)

    return login_required(page)  # type: ignore[return-value]


def actor_of(request: HttpRequest) -> Actor:
    """Return the actor behind a request whose user is signed in."""
    user = request.user
    if not isinstance(user, User):
        raise PermissionDenied("Sign in first.")
    source = request.META.get("REMOTE_ADDR") or ""
    return Actor(user=user, source=source, browser=browser_of(request.session))


def attempt_action(
    request: HttpRequest, action: Callable[[], object], *, back: str, done: str = ""
) -> HttpResponseRedirect:
    """Run `action` and go `back`; a message says `done`, or what stood in the way."""
    try:
        action()
    except (NotFoundError, PermissionDeniedError):
        raise
    except PortalError as error:
        messages.error(request, error.summary)
    else:
        if done:
            messages.success(request, done)
    return redirect(back)
