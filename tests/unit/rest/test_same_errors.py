"""Client and portal name the same errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import httpx
import pytest

from jobs import errors as portal_errors
from jobs.api.base.answer_schema import NOT_ALWAYS
from jobs.api.base.errors import problem_of
from monarch_client import errors as client_errors
from monarch_client.gateway import errors as gateway_errors
from monarch_client.rest.refusals import refusal

# Codes of what never reaches the portal, or never came from one.
OF_THE_CLIENT_ALONE = {
    client_errors.ClientError,
    client_errors.NotSignedInError,
    client_errors.UnreachableError,
    client_errors.UnprovedPortalError,
    client_errors.UnexpectedAnswerError,
    client_errors.RefusedError,
}

# Answered at the gateway's addresses alone, where no REST client calls.
OF_THE_GATEWAY = {portal_errors.SessionRefusedError: gateway_errors.SessionRefusedError}


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def raised_by_the_portal() -> list[type[portal_errors.PortalError]]:
    found = [portal_errors.PortalError, *subclasses(portal_errors.PortalError)]
    return sorted(set(found), key=lambda kind: (kind.code, kind.__name__))


def name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def test_a_code_of_the_client_is_one_of_the_portals_or_its_very_own():
    shared = {
        kind.code
        for kind in subclasses(client_errors.ClientError)
        if kind not in OF_THE_CLIENT_ALONE and "code" in vars(kind) and _is_of_the_tree(kind)
    }
    assert shared <= {kind.code for kind in raised_by_the_portal()}
    assert {"invalid_spec", "invalid_upload", "upload_too_large"} <= shared


def _is_of_the_tree(kind: type) -> bool:
    return kind.__module__ == client_errors.__name__


def answered_by_rest() -> list[type[portal_errors.PortalError]]:
    return [kind for kind in raised_by_the_portal() if kind not in OF_THE_GATEWAY]


def test_a_refusal_of_the_gateway_has_the_same_code_in_a_program():
    assert {kind.code: own.code for kind, own in OF_THE_GATEWAY.items()} == {
        "session_refused": "session_refused"
    }


@pytest.mark.parametrize("kind", answered_by_rest(), ids=name_of)
def test_every_refusal_of_the_portal_reaches_the_client_with_its_code_and_words(kind):
    answer = problem_of(kind("It is so.", errors=[]))
    request = httpx.Request("GET", "http://portal/api/v1/me")
    response = httpx.Response(
        answer.status_code, headers=dict(answer.items()), content=answer.content, request=request
    )
    error = refusal(response)
    assert isinstance(error, client_errors.RefusedError)
    assert (error.portal_code, error.message) == (kind.code, "It is so.")
    expected = {
        400: client_errors.InvalidValueError,
        404: client_errors.MissingError,
        403: client_errors.ForbiddenError,
        409: client_errors.ConflictError,
        422: client_errors.InvalidValueError,
    }
    assert type(error) is expected.get(kind.http_status, client_errors.RefusedError)


def test_the_tree_in_the_clients_docstring_names_every_error():
    tree = str(client_errors.__doc__)
    for kind in [k for k in subclasses(client_errors.ClientError) if _is_of_the_tree(k)]:
        assert kind.__name__ in tree


def test_errors_of_a_specification_look_the_same_from_both_sides():
    error = client_errors.SpecError("name", 1, "bad_value", "No.", "yes")
    assert json.loads(json.dumps(error.to_dict())) == error.to_dict()
    # Errors of a single specification do not name it.
    sometimes = {name for kind, name in NOT_ALWAYS if kind == "SpecError"}
    assert {*error.to_dict(), *sometimes} == {each.name for each in fields(error)}
