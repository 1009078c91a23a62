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

from jobs.actions.accounts.rights import check_rights_on_commit
from jobs.actions.accounts.sign_in_links import redeem
from jobs.errors import NotFoundError, TooManyTriesError
from jobs.ground import clock
from jobs.live.tries import Subject, begin_try, of_address, of_links_from, of_name, succeeded
from jobs.models.user_session import SIGN_IN
from jobs.web.base.forms import SignInForm

BACKEND = "django.contrib.auth.backends.ModelBackend"


@method_decorator([never_cache, require_http_methods(["GET", "HEAD", "POST"])], name="dispatch")
class SignInView(LoginView):
    """User name and password. `next` is followed only within this portal."""

    template_name = "account/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check name and password, unless too many tries have failed: then not even these."""
        try:
            begin_try(*self._subjects())
        except TooManyTriesError as error:
            context = self.get_context_data(form=SignInForm(request), problem=error.message)
            return _ask_for_patience(request, self.template_name, context, error)
        return super().post(request, *args, **kwargs)

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """Return the address to go on to; empty when it is not within this portal."""
        return safe_next(request or self.request, "")

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign in."""
        succeeded(*self._subjects())
        response = super().form_valid(form)
        _describe_sign_in(self.request)
        return response

    def _subjects(self) -> tuple[Subject, Subject]:
        return of_name(self.request.POST.get("username", "")), _address(self.request)


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
        return _no_such_link(request, error)
    login(request, user, backend=BACKEND)
    _describe_sign_in(request)
    if user.has_usable_password():
        return redirect(safe_next(request))
    query = urlencode({"first": "1", "next": safe_next(request)})
    return redirect(f"{reverse('web:password')}?{query}")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session. A second sign-out does no harm."""
    user_id = request.user.pk
    logout(request)
    if user_id is not None:
        check_rights_on_commit(user_id)
    return redirect("web:sign_in")


def safe_next(request: HttpRequest, default: str | None = None) -> str:
    """Return the next address if it is within this portal; else `default` or the landing page."""
    landing = reverse("web:landing")
    wanted: Any = request.POST.get("next") or request.GET.get("next") or ""
    inside = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    # Anything but a path could be taken for the name of a view.
    if inside and wanted.startswith(landing):
        return str(wanted)
    return landing if default is None else default


def _describe_sign_in(request: HttpRequest) -> None:
    """Store in the session when and from where its user signed in, for lists of sessions."""
    request.session[SIGN_IN] = {
        "at": clock.now().isoformat(),
        "address": request.META.get("REMOTE_ADDR") or "",
        "browser": request.headers.get("User-Agent", "").replace("\0", ""),
    }


def _address(request: HttpRequest) -> Subject:
    return of_address(request.META.get("REMOTE_ADDR") or "")


def _no_such_link(request: HttpRequest, error: NotFoundError) -> HttpResponse:
    """Answer a wrong link. Guesses are counted, though they hit nothing (links carry 192 bits)."""
    template = "account/sign_in_once.html"
    try:
        begin_try(of_links_from(request.META.get("REMOTE_ADDR") or ""))
    except TooManyTriesError as refusal:
        return _ask_for_patience(request, template, {"problem": refusal.message}, refusal)
    return render(request, template, {"problem": error.message}, status=410)


def _ask_for_patience(
    request: HttpRequest, template: str, context: dict[str, Any], error: TooManyTriesError
) -> HttpResponse:
    response = render(request, template, context, status=error.http_status)
    response["Retry-After"] = str(error.retry_after)
    return response
