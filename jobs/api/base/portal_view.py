"""The base of every REST view: its actor, the objects in its address, and its error answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from jobs.api.base.answers import AnswerRenderer
from jobs.api.base.authentication import AUTHENTICATION_CLASSES, actor_of
from jobs.api.base.errors import exception_handler
from jobs.api.base.parsers import BoundedJsonParser
from jobs.api.base.schema import PortalSchema
from jobs.api.base.strict import read, require_declared
from jobs.models import Job, Project
from jobs.permissions import Actor, job_for, project_for


class PortalView(APIView):
    """A view whose every object is reached through the actor's projects.

    All that DRF would read from settings is set here, so that no setting can open the API.
    """

    authentication_classes: Any = AUTHENTICATION_CLASSES
    permission_classes: Any = (IsAuthenticated,)
    renderer_classes = (AnswerRenderer,)
    parser_classes: Any = (BoundedJsonParser,)
    schema = PortalSchema()
    # Under which heading the API's page shows it.
    tag = "jobs"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate the caller, then refuse parameters and fields that are not declared."""
        super().initial(request, *args, **kwargs)
        require_declared(self, request)

    @property
    def actor(self) -> Actor:
        """Return the actor of the request."""
        return actor_of(self.request)

    def project(self) -> Project:
        """Return the project in the address. NotFoundError if the actor may not see it."""
        return project_for(self.actor, self.kwargs["slug"])

    def job(self) -> Job:
        """Return the job in the address. NotFoundError if the actor may not see it."""
        return job_for(self.actor, self.kwargs["slug"], self.kwargs["job_id"])

    def parsed(self, serializer: type[Serializer[Any]], data: Any) -> dict[str, Any]:
        """Return `data` in the shape of `serializer`. ValidationError: it does not fit."""
        return read(serializer, data)

    def get_exception_handler(self) -> Callable[..., Any]:
        """Return the handler that answers every error as problem+json."""
        return exception_handler
