"""The last resort: the answers to people and programs when a request has failed."""

from __future__ import annotations

import sys

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404
from django.views import defaults

from jobs.api.base.errors import problem, problem_of
from jobs.audit.request_context import current_request
from jobs.errors import DatabaseUnavailableError
from jobs.ground.outages import is_database_away
from jobs.web.base.access import actor_of
from jobs.web.base.frame import render_page

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses: Django's handler400.

    If the portal is opened under a name that is not in ALLOWED_HOSTS, the answer names the setting.
    The name itself is the sender's own text: the log has it, the answer does not repeat it.
    """
    is_of_api = request.path_info.startswith(_API)
    if not isinstance(exception, DisallowedHost):
        return problem_of(exception) if is_of_api else defaults.bad_request(request, exception)
    if is_of_api:
        detail = (
            "The portal does not answer under the host name of this request: "
            "its setting ALLOWED_HOSTS lacks it."
        )
        return problem(400, "host_not_allowed", detail)
    return render(request, "400_host.html", status=400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an address that leads nowhere: Django's handler404. The API has its own."""
    context = {"exception": "" if isinstance(exception, Resolver404) else str(exception)}
    if not request.user.is_authenticated:
        return render(request, "404.html", context, status=404)
    return render_page(request, actor_of(request), "404.html", context, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a request that failed: a page, or below the API's root a problem document.

    It is Django's handler500, called while the exception is being handled. The log has the
    traceback.
    """
    error = sys.exc_info()[1]
    if not isinstance(error, Exception):
        return defaults.server_error(request)
    if request.path_info.startswith(_API):
        return problem_of(error)
    if not is_database_away(error):
        # Rendered without the request: reading its session may be what failed.
        context = {"request_id": current_request().request_id}
        return HttpResponseServerError(render_to_string("500.html", context))
    response = render(request, "503.html", status=503)
    response.headers["Retry-After"] = str(DatabaseUnavailableError.retry_after)
    return response
