"""The launch plans of jobs, over REST."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.submit import check_specs
from jobs.actions.jobs.submit_documents import check_document, check_documents
from jobs.api.base.answers import answer_with
from jobs.api.base.inputs import BatchBody, SubmitBody
from jobs.api.base.schema import problems
from jobs.api.jobs.job_views import SpecView
from jobs.permissions import Verb, require
from jobs.readers.launch_plan import plan_job, plan_jobs
from monarch_client.wire.clusters import Plan, Plans


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
        checked = check_document(self.actor, project, self.source())
        return answer_with(plan_job(self.actor, project, checked))


class PlanBatchView(SpecView):
    """`/projects/{slug}/plan/batch`."""

    @extend_schema(
        operation_id="job_plan_batch",
        request={"application/yaml": OpenApiTypes.STR, "application/json": BatchBody},
        responses={200: Plans, **problems(400, 401, 403, 404, 413, 415, 422)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Plan several jobs that would be submitted together; nothing is stored or started."""
        project = self.project()
        require(self.actor, Verb.SUBMIT_JOB, project)
        body = self.parsed(BatchBody, request.data)
        if "spec" in body:
            checked = check_documents(self.actor, project, body["spec"])
        else:
            checked = check_specs(self.actor, project, body["specs"])
        return answer_with(plan_jobs(self.actor, project, checked))
