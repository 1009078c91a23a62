"""Pieces from which the OpenAPI description of the views is written."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from drf_spectacular.utils import OpenApiResponse

from jobs.api.base import answer_schema  # noqa: F401 - registers itself
from jobs.api.base.authentication import DriverAuthentication, TokenAuthentication
from monarch_client.wire.problems import Problem


class PortalSchema(AutoSchema):
    """A schema with operations grouped by their view's `tag`, and docstrings as summaries."""

    def get_tags(self) -> list[str]:
        """Return the view's own tag."""
        view: Any = self.view
        return [view.tag]

    def get_summary(self) -> str:
        """Return the summary for the API's page: the first line of the method's docstring."""
        method = getattr(self.view, self.method.lower())
        return (method.__doc__ or "").strip().split("\n", 1)[0]

    def get_request_serializer(self) -> Any:
        """Return None, the body of an operation that declares none."""
        return None


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The description of API tokens in OpenAPI."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> Any:
        """Return the scheme of a bearer token in the Authorization header."""
        return build_bearer_security_scheme_object("Authorization", "Bearer", "mpt_...")


class DriverScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The description of the tokens of jobs' own programs in OpenAPI."""

    target_class = DriverAuthentication
    name = "driver_token"

    def get_security_definition(self, auto_schema: Any) -> Any:
        """Return the scheme of a bearer token in the Authorization header."""
        return build_bearer_security_scheme_object("Authorization", "Bearer", "mpj_...")


def problems(*statuses: int) -> dict[Any, OpenApiResponse]:
    """Return the errors that an operation may answer with; always includes 400."""
    answer = OpenApiResponse(Problem)
    return {(status, "application/problem+json"): answer for status in sorted({400, *statuses})}
