"""Stack dumps of a job over REST: ask a rank for one, read what came."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.attempts.ask_stacks import ask_all_stacks, ask_stacks
from jobs.api.base.answers import answer_with
from jobs.api.base.inputs import AttemptQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.api.logs.log_inputs import checked
from jobs.permissions import require_stacks
from jobs.readers.stacks import StackChoice, job_stacks, stack_dump_view
from monarch_client.wire.stacks import StackDump, Stacks

_LARGEST = 2**31 - 1


class StacksBody(serializers.Serializer[Any]):
    """The processes whose stacks to dump."""

    rank = WholeNumberField(
        required=False, default=0, min_value=0, max_value=_LARGEST, help_text="The node."
    )
    pid = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=_LARGEST,
        help_text="One process of the job there; all of its Python processes else.",
    )


class StacksQuery(AttemptQuery):
    """The stack dumps to return."""

    id = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2**63 - 1,
        help_text="This one alone.",
    )


class StacksView(PortalView):
    """`/projects/{slug}/jobs/{id}/stacks`."""

    @extend_schema(
        operation_id="job_stacks",
        parameters=[StacksQuery],
        responses={200: Stacks, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """List the stack dumps of an attempt: who requested them when, and what came.

        `processes` are those of the newest one, or of the one with that `id`.
        """
        query = checked(StacksQuery, request.query_params)
        choice = StackChoice(query["attempt"], only=query["id"])
        return answer_with(job_stacks(self.actor, slug, job_id, choice))

    @extend_schema(
        operation_id="job_stacks_ask",
        request=StacksBody,
        responses={202: StackDump, **problems(400, 401, 403, 404, 409, 415)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Dump the stacks of a node's Python processes. It is ready when its state is done."""
        job = self.job()
        require_stacks(self.actor, job)
        body = self.parsed(StacksBody, request.data)
        dump = ask_stacks(self.actor, job, body["rank"], body["pid"])
        return answer_with(stack_dump_view(dump), HTTPStatus.ACCEPTED)


class AllStacksView(PortalView):
    """`/projects/{slug}/jobs/{id}/stacks/all`."""

    @extend_schema(
        operation_id="job_stacks_ask_all",
        request=None,
        responses={202: Stacks, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Dump the stacks of all nodes at the same time, of at most 64, the silent ones first.

        Then `groups` of the list has equal stacks together, as the answers arrive.
        """
        job = self.job()
        require_stacks(self.actor, job)
        ask_all_stacks(self.actor, job)
        return answer_with(job_stacks(self.actor, slug, job_id), HTTPStatus.ACCEPTED)
