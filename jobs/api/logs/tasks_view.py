"""The task contexts of a job."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.inputs import AttemptQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import checked
from jobs.readers.tasks import job_tasks
from monarch_client.wire.tasks import TaskContexts


class TasksView(PortalView):
    """`/projects/{slug}/jobs/{id}/tasks`."""

    @extend_schema(
        operation_id="job_tasks",
        parameters=[AttemptQuery],
        responses={200: TaskContexts, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Show tasks by name, actors, objects and failures of an attempt as last reported."""
        query = checked(AttemptQuery, request.query_params)
        return answer_with(job_tasks(self.actor, slug, job_id, query["attempt"]))
