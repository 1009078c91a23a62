"""The explanation of a job's wait, over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.permissions import job_for
from jobs.readers.wait_explanation import explain_wait
from monarch_client.wire.queue import Waiting


class WhyView(PortalView):
    """`/projects/{slug}/jobs/{id}/why`."""

    @extend_schema(operation_id="job_why", responses={200: Waiting, **problems(401, 404)})
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Explain a job's wait: its position, what blocks it, the holders, the likely start."""
        waiting = explain_wait(self.actor, job_for(self.actor, slug, job_id))
        return answer_with(waiting)
