"""The page for a form whose CSRF token is wrong, with a link that can be followed."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

_KEEPS_DRAFTS = "web:submit"


def refused_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer as Django's CSRF_FAILURE_VIEW. `reason` is only logged: it does not help the user."""
    match = request.resolver_match
    has_draft = match is not None and match.view_name == _KEEPS_DRAFTS
    # An action's own address takes no GET; the submit page's does.
    way_on = request.get_full_path() if has_draft else _page_before(request)
    context = {"has_draft": has_draft, "way_on": way_on}
    return render(request, "403_csrf.html", context, status=403)


def _page_before(request: HttpRequest) -> str:
    """Return the path of the page with the form, when it is one of this portal's."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, allowed_hosts={request.get_host()}):
        return reverse("web:landing")
    parts = urlsplit(before)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    # Alone it might be the address of another host.
    inside = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if inside else reverse("web:landing")
