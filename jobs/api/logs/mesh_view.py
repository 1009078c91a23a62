"""The hosts, procs and actors of a job's meshes."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.inputs import AttemptQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import checked
from jobs.readers.mesh import job_mesh
from monarch_client.wire.mesh import Mesh


class MeshView(PortalView):
    """`/projects/{slug}/jobs/{id}/mesh`."""

    @extend_schema(
        operation_id="job_mesh",
        parameters=[AttemptQuery],
        responses={200: Mesh, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Show the hosts, procs and actors of an attempt as last reported, and what failed when."""
        query = checked(AttemptQuery, request.query_params)
        return answer_with(job_mesh(self.actor, slug, job_id, query["attempt"]))
