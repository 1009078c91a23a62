"""The graph of a job over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.readers.job_graph import job_graph
from monarch_client.wire.graph import JobGraph


class GraphView(PortalView):
    """`/projects/{slug}/jobs/{id}/graph`."""

    @extend_schema(operation_id="job_graph", responses={200: JobGraph, **problems(401, 404)})
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """List the jobs that dependencies connect with the job, and these dependencies."""
        return answer_with(job_graph(self.actor, slug, job_id))
