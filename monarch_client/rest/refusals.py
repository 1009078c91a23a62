"""The portal's problem+json as exceptions, by code."""

from __future__ import annotations

import os
from typing import Any

import httpx

from monarch_client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidSpecErrors,
    InvalidValueError,
    MissingError,
    NotSignedInError,
    RefusedError,
    SpecError,
    UnexpectedAnswerError,
)

_UNAUTHORIZED = 401

_BY_STATUS: dict[int, type[RefusedError]] = {
    400: InvalidValueError,
    403: ForbiddenError,
    404: MissingError,
    409: ConflictError,
    422: InvalidValueError,
}


def is_problem(response: httpx.Response) -> bool:
    """Whether the portal itself explains the error."""
    media_type = str(response.headers.get("Content-Type", ""))
    return media_type.startswith("application/problem+json")


def refusal(response: httpx.Response) -> ClientError:
    """Return the exception for an answer that is no success."""
    if not is_problem(response):
        return UnexpectedAnswerError(
            f"{response.request.method} {response.request.url} answered "
            f"{response.status_code}, and not as a portal does: is the address right?"
        )
    body = response.json()
    if body.get("code") == "invalid_spec" and body.get("errors"):
        return InvalidSpecErrors([spec_error(row) for row in body["errors"]])
    detail = str(body.get("detail", ""))
    if response.status_code == _UNAUTHORIZED:
        return NotSignedInError(detail + sign_in_advice())
    kind = _BY_STATUS.get(response.status_code, RefusedError)
    return kind(detail, status=response.status_code, portal_code=str(body.get("code")), data=body)


def sign_in_advice() -> str:
    """Return advice about a refused token. People can sign in; jobs cannot."""
    return "" if os.environ.get("MPORTAL_JOB_ID") else " Run `mportal login`."


def spec_error(row: dict[str, Any]) -> SpecError:
    """Convert one row of `errors`."""
    return SpecError(
        path=row.get("path", ""),
        line=row.get("line"),
        code=row.get("code", ""),
        message=row.get("message", ""),
        suggestion=row.get("suggestion"),
        document=row.get("document", 0),
        column=row.get("column"),
        end_column=row.get("end_column"),
    )
