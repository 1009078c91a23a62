"""The last resort: what people and programs are told when a request could not be answered."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults

from jobs.api.errors import problem_of
from jobs.errors import DatabaseUnavailableError
from jobs.outages import is_database_away

_API = "/api/"


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500: a page in plain words, or below the API's root a problem document.

    The log has the traceback; Django calls this while the exception is being handled.
    """
    error = sys.exc_info()[1]
    if not isinstance(error, Exception):
        return defaults.server_error(request)
    if request.path.startswith(_API):
        return problem_of(error)
    if not is_database_away(error):
        return defaults.server_error(request)
    response = render(request, "503.html", status=503)
    response.headers["Retry-After"] = str(DatabaseUnavailableError.retry_after)
    return response
