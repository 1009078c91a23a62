"""Notifications of a browser: the page where its user chooses them, and how the jobs are."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs.permissions import Actor
from jobs.readers.job_filter import ID_DIGITS
from jobs.readers.job_notices import JobNotice, job_notices
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page


@require_safe
@signed_in
def notifications(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the choice, which the browser stores: permission is given to a browser as well."""
    return render_page(request, actor, "account/notifications.html", {})


@never_cache
@require_safe
@signed_in
def notices(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Return how the jobs in `jobs` are, and with `own` also the user's own ones."""
    words = request.GET.get("jobs", "").split(",")
    watched = [int(word) for word in words if word.isdecimal() and len(word) <= ID_DIGITS]
    found = job_notices(actor, watched, own=bool(request.GET.get("own")))
    jobs = [_with_address(each) for each in found]
    return JsonResponse({"user": actor.user.get_username(), "jobs": jobs})


def _with_address(notice: JobNotice) -> dict[str, object]:
    return {**asdict(notice), "href": reverse("web:job", args=[notice.project, notice.id])}
