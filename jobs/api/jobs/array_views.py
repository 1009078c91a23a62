"""Several jobs as one over REST: submitted together, and arrays."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.arrays import cancel_array, rerun_failed
from jobs.actions.jobs.submit import submit_jobs
from jobs.actions.jobs.submit_documents import submit_documents
from jobs.api.base.answers import addressed, addressed_array, answer_with
from jobs.api.base.authentication import WITH_DRIVERS
from jobs.api.base.inputs import BatchBody, PageQuery, RerunBody
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.jobs.job_views import MAX_KEY_LENGTH, SpecView, idempotency_key
from jobs.permissions import Verb, require
from jobs.readers.job_array import array_for, job_array
from jobs.readers.job_table import rows_of
from monarch_client.wire.jobs import Array, Batch


class JobBatchView(SpecView):
    """`/projects/{slug}/jobs/batch`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="job_submit_batch",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
                location=OpenApiParameter.HEADER,
                description="The same key and body give the same jobs again, for 24 hours.",
            )
        ],
        request={"application/yaml": OpenApiTypes.STR, "application/json": BatchBody},
        responses={
            201: Batch,
            **problems(400, 401, 403, 404, 409, 413, 415, 422, 507),
        },
    )
    def post(self, request: Request, slug: str) -> Response:
        """Submit several jobs, which may depend on one another: all of them or none."""
        project = self.project()
        require(self.actor, Verb.SUBMIT_JOB, project)
        body = self.parsed(BatchBody, request.data)
        key = idempotency_key(request)
        if "spec" in body:
            jobs = submit_documents(self.actor, project, body["spec"], idempotency_key=key)
        else:
            jobs = submit_jobs(self.actor, project, body["specs"], idempotency_key=key)
        rows = rows_of(self.actor, project, jobs)
        return answer_with(
            Batch(results=[addressed(row, request) for row in rows]), HTTPStatus.CREATED
        )


class _AnswersArray(PortalView):
    """A view whose answer is an array."""

    def answer(self, page: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
        """Return the array as it is now, with the jobs of a `PageQuery`."""
        query, place = self.parsed(PageQuery, page), (self.kwargs["slug"], self.kwargs["array_id"])
        found = job_array(self.actor, *place, begin=query["cursor"], limit=query["limit"])
        return answer_with(addressed_array(found, self.request), status)


class ArrayView(_AnswersArray):
    """`/projects/{slug}/arrays/{id}`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="array_get",
        parameters=[PageQuery],
        responses={200: Array, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, array_id: int) -> Response:
        """Show an array with a page of its jobs, and the number of jobs by status."""
        return self.answer(request.query_params)


class ArrayCancelView(_AnswersArray):
    """`/projects/{slug}/arrays/{id}/actions/cancel`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="array_cancel",
        request=None,
        responses={202: Array, **problems(401, 403, 404)},
    )
    def post(self, request: Request, slug: str, array_id: int) -> Response:
        """End all jobs of the array that have not ended."""
        cancel_array(self.actor, array_for(self.actor, slug, array_id))
        return self.answer({}, HTTPStatus.ACCEPTED)


class ArrayRerunFailedView(_AnswersArray):
    """`/projects/{slug}/arrays/{id}/actions/rerun-failed`."""

    @extend_schema(
        operation_id="array_rerun_failed",
        request=RerunBody,
        responses={201: Array, **problems(400, 401, 403, 404, 409, 415, 422, 507)},
    )
    def post(self, request: Request, slug: str, array_id: int) -> Response:
        """Run the jobs of the array again that failed or were cancelled."""
        array = array_for(self.actor, slug, array_id)
        rerun_failed(self.actor, array, **self.parsed(RerunBody, request.data))
        return self.answer({}, HTTPStatus.CREATED)
