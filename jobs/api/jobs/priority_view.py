"""A queued job's priority over REST."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.prioritize import prioritize_job
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.api.jobs.job_views import JobView
from jobs.permissions import require_prioritize
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from monarch_client.wire.jobs import Job


class PriorityBody(serializers.Serializer[Any]):
    """The priority that the job is to have; higher goes first."""

    priority = WholeNumberField(min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY)


class JobPrioritizeView(JobView):
    """`/projects/{slug}/jobs/{id}/actions/prioritize`."""

    @extend_schema(
        operation_id="job_prioritize",
        request=PriorityBody,
        responses={200: Job, **problems(400, 401, 403, 404, 409, 415)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Change the priority of a job that waits."""
        job = self.job()
        require_prioritize(self.actor, job)
        prioritize_job(self.actor, job, self.parsed(PriorityBody, request.data)["priority"])
        return self.answer(job.pk, HTTPStatus.OK)
