"""Signing in with a password or a one-time link, and signing out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import login, logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.sign_in_links import redeem
from jobs.errors import NotFoundError
from jobs.web.forms import SignInForm

BACKEND = "django.contrib.auth.backends.ModelBackend"


@method_decorator(never_cache, name="dispatch")
class SignInView(LoginView):
    """User name and password. `next` is followed only within this portal."""

    template_name = "account/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_once(request: HttpRequest, secret: str) -> HttpResponse:
    """Sign in by a one-time link.

    Opening the link only asks: browsers and chat programs fetch links ahead, which must not use
    it up. The button redeems it.
    """
    if request.method != "POST":
        return render(request, "account/sign_in_once.html", {"next": safe_next(request)})
    try:
        user = redeem(secret)
    except NotFoundError as error:
        context = {"problem": error.message}
        return render(request, "account/sign_in_once.html", context, status=410)
    login(request, user, backend=BACKEND)
    if user.has_usable_password():
        return redirect(safe_next(request))
    query = urlencode({"first": "1", "next": safe_next(request)})
    return redirect(f"{reverse('web:password')}?{query}")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session. A second sign-out does no harm."""
    logout(request)
    return redirect("web:sign_in")


def safe_next(request: HttpRequest, default: str = "/") -> str:
    """Where the request wants to go next, if that lies within this portal; else `default`."""
    wanted: Any = request.POST.get("next") or request.GET.get("next") or ""
    inside = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    # Anything but a path could be taken for the name of a view.
    return wanted if inside and wanted.startswith("/") else default
