"""The metrics of a job's hosts, and those that its program reports."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.inputs import AttemptQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.api.logs.log_inputs import checked
from jobs.readers.host_metrics import HostChoice, host_metrics
from jobs.readers.program_metrics import SeriesChoice, program_metrics
from monarch_client.wire.metrics import Hosts, ProgramMetrics


def _rank(help_text: str) -> WholeNumberField:
    return WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=2**31 - 1,
        help_text=help_text,
    )


class MetricsQuery(AttemptQuery):
    """The attempt, and the host whose history to return."""

    rank = _rank("The host whose history is wanted.")


class MetricsView(PortalView):
    """`/projects/{slug}/jobs/{id}/metrics`."""

    @extend_schema(
        operation_id="job_metrics",
        parameters=[MetricsQuery],
        responses={200: Hosts, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Show the latest figures of all hosts of an attempt, and the history of one of them."""
        query = checked(MetricsQuery, request.query_params)
        found = host_metrics(self.actor, slug, job_id, HostChoice(**query))
        return answer_with(found)


class ProgramMetricsQuery(AttemptQuery):
    """The attempt, and the metric and rank to return."""

    name = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=64,
        help_text="The metric whose history is wanted.",
    )
    rank = _rank("Only this rank.")


class ProgramMetricsView(PortalView):
    """`/projects/{slug}/jobs/{id}/program-metrics`."""

    @extend_schema(
        operation_id="job_program_metrics",
        parameters=[ProgramMetricsQuery],
        responses={200: ProgramMetrics, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Show the metrics that the program of an attempt reported, and the history of one."""
        query = checked(ProgramMetricsQuery, request.query_params)
        return answer_with(program_metrics(self.actor, slug, job_id, SeriesChoice(**query)))
