"""One action on many jobs over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.bulk import LEAST_VERB, BulkAction, BulkRequest, act_on_jobs
from jobs.api.base.answers import answer_with
from jobs.api.base.authentication import WITH_DRIVERS
from jobs.api.base.inputs import BulkBody
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.jobs.job_views import MAX_KEY_LENGTH, idempotency_key
from jobs.permissions import require
from monarch_client.wire.bulk import BulkResult


class JobBulkView(PortalView):
    """`/projects/{slug}/jobs/actions`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="job_bulk",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
                location=OpenApiParameter.HEADER,
                description="With the same key each job is rerun once, for 24 hours.",
            )
        ],
        request=BulkBody,
        responses={200: BulkResult, **problems(400, 401, 403, 404, 415)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Apply one action to many jobs, each by itself, and report the outcome of each."""
        project = self.project()
        body = self.parsed(BulkBody, request.data)
        action = BulkAction(body["action"])
        require(self.actor, LEAST_VERB[action], project)
        wanted = BulkRequest(
            action,
            body["jobs"],
            dict.fromkeys(body["jobs"], body["priority"]) if "priority" in body else {},
            dict.fromkeys(body["jobs"], body["labels"]) if "labels" in body else {},
            drop_deleted=body["drop_deleted"],
            idempotency_key=idempotency_key(request),
        )
        return answer_with(BulkResult(results=act_on_jobs(self.actor, project, wanted)))
