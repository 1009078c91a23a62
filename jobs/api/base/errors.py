"""Every error of the API as RFC 9457 problem+json with a stable `code`; nothing else leaves it.

Domain errors bring their own code and status (`jobs.errors`); what DRF and Django raise is mapped
here. A bug is logged with its traceback and answered without one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from msgspec import UNSET
from rest_framework import exceptions
from rest_framework.views import set_rollback

from jobs.errors import DatabaseUnavailableError, PortalError
from jobs.ground.outages import is_database_away
from monarch_client.wire.problems import Problem

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"

_STATUS_OF_DJANGO_ERROR: tuple[tuple[type[Exception], int, str, str], ...] = (
    (Http404, 404, "not_found", "There is nothing at this address."),
    (PermissionDenied, 403, "permission_denied", "This is not allowed."),
    (RequestDataTooBig, 413, "body_too_large", "The request body is too large."),
    (BadRequest, 400, "bad_request", "The request cannot be read."),
    (SuspiciousOperation, 400, "bad_request", "The request cannot be read."),
)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    errors: Any = UNSET,
) -> JsonResponse:
    """Return the response for one problem; `errors` are rows as `ProblemRow` describes them."""
    body = Problem(
        type=f"urn:mportal:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        errors=errors,
    )
    content = msgspec.to_builtins(body)
    return JsonResponse(content, status=status, content_type=CONTENT_TYPE, headers=headers)


def problem_of(error: Exception) -> HttpResponse:
    """Return the answer to any `error`. For views outside DRF, and for the handler below."""
    if isinstance(error, PortalError):
        return _portal_problem(error)
    if isinstance(error, exceptions.APIException):
        return _drf_problem(error)
    if is_database_away(error):
        log.warning("database away: %s", error, extra={"action": "database_away"})
        return _portal_problem(DatabaseUnavailableError())
    for kind, status, code, detail in _STATUS_OF_DJANGO_ERROR:
        if isinstance(error, kind):
            return problem(status, code, detail)
    log.error("unexpected error", exc_info=error, extra={"action": "api_error"})
    detail = "The portal made a mistake; it is in its log under the X-Request-ID of this answer."
    return problem(500, "internal_error", detail)


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """Handle an exception of any view of the API, as DRF's exception handler."""
    set_rollback()
    return problem_of(error)


@csrf_exempt
def not_found_view(request: HttpRequest, **_: Any) -> HttpResponse:
    """Answer 404 for any other address below the API's root."""
    return problem(404, "not_found", f"There is no {request.path}; see the API's page, docs.")


def _portal_problem(error: PortalError) -> HttpResponse:
    errors = error.data.get("errors", UNSET)
    wait = getattr(error, "retry_after", None)
    headers = {"Retry-After": str(wait)} if wait else None
    return problem(error.http_status, error.code, error.message, headers=headers, errors=errors)


def _drf_problem(error: exceptions.APIException) -> HttpResponse:
    headers: dict[str, str] = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = f"{wait:.0f}"
    if isinstance(error, exceptions.ValidationError):
        rows = list(_rows(error.get_full_details()))
        detail = "; ".join(f"{row['path']}: {row['message']}" for row in rows)
        return problem(error.status_code, "invalid_request", detail, errors=rows)
    return problem(error.status_code, error.default_code, str(error.detail), headers=headers)


def _rows(details: Any, path: str = "") -> Any:
    """Flatten DRF's nested details to `{"path", "code", "message"}` rows."""
    if isinstance(details, dict) and {"message", "code"} == set(details):
        yield {"path": path, "code": details["code"], "message": str(details["message"])}
    elif isinstance(details, dict):
        for key, value in details.items():
            own = "" if key == "non_field_errors" else key
            yield from _rows(value, f"{path}.{own}".strip("."))
    else:
        for value in details:
            yield from _rows(value, path)
