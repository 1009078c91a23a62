"""The launch plan of a job, over REST."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.submit import check_spec
from jobs.api.base.answers import answer_with
from jobs.api.base.inputs import SubmitBody
from jobs.api.base.schema import problems
from jobs.api.jobs.job_views import SpecView
from jobs.readers.launch_plan import plan_job
from monarch_client.wire.clusters import Plan


class PlanView(SpecView):
    """`/projects/{slug}/plan`."""

    @extend_schema(
        operation_id="job_plan",
        request={"application/yaml": OpenApiTypes.STR, "application/json": SubmitBody},
        responses={200: Plan, **problems(400, 401, 403, 404, 413, 415, 422)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Show where a job could run, for how much and when; nothing is stored or started."""
        project = self.project()
        checked = check_spec(self.actor, project, self.source())
        return answer_with(plan_job(self.actor, project, checked))
