"""More time over REST: for a job that runs, and for a cluster that waits for one."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.extend import MOST_S, extend_cluster, extend_job
from jobs.api.base.answers import answer_with
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.api.clusters.cluster_views import ClusterView
from jobs.api.jobs.job_views import MAX_KEY_LENGTH, JobView, idempotency_key
from jobs.permissions import require_cluster, require_extend
from jobs.readers.clusters import cluster_named, cluster_row
from monarch_client.spec.durations import seconds_in
from monarch_client.wire.clusters import Cluster
from monarch_client.wire.jobs import Job


class ExtendBody(serializers.Serializer[Any]):
    """The time to add: `duration` as in a specification, or `seconds`."""

    duration = serializers.CharField(required=False, max_length=50, help_text="Such as 2h or 90m.")
    seconds = WholeNumberField(required=False, min_value=1, max_value=MOST_S)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return exactly one of the two, in seconds."""
        if len(attrs) != 1:
            raise serializers.ValidationError("Give either duration or seconds.")
        if "seconds" in attrs:
            return attrs
        seconds = seconds_in(attrs["duration"])
        if seconds is None or not 1 <= seconds <= MOST_S:
            message = "Give a length of time such as 90m, 2h or 1h30m, up to 366d."
            raise serializers.ValidationError({"duration": message})
        return {"seconds": seconds}


class JobExtendView(JobView):
    """`/projects/{slug}/jobs/{id}/actions/extend`."""

    @extend_schema(
        operation_id="job_extend",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
                location=OpenApiParameter.HEADER,
                description="With the same key the same extension is made once, for 24 hours.",
            )
        ],
        request=ExtendBody,
        responses={200: Job, **problems(400, 401, 403, 404, 409, 415, 422)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Let a job run longer than its max_duration."""
        job = self.job()
        require_extend(self.actor, job)
        seconds = self.parsed(ExtendBody, request.data)["seconds"]
        extend_job(self.actor, job, seconds, idempotency_key=idempotency_key(request))
        return self.answer(job.pk, HTTPStatus.OK)


class ClusterExtendView(ClusterView):
    """`/projects/{slug}/clusters/{cluster_name}/actions/extend`."""

    @extend_schema(
        operation_id="cluster_extend",
        request=ExtendBody,
        responses={200: Cluster, **problems(400, 401, 403, 404, 409, 415)},
    )
    def post(self, request: Request, slug: str, cluster_name: str) -> Response:
        """Keep a cluster without a job for at least so long from now."""
        cluster = cluster_named(self.actor, self.project(), cluster_name)
        require_cluster(self.actor, cluster)
        seconds = self.parsed(ExtendBody, request.data)["seconds"]
        row = cluster_row(self.actor, extend_cluster(self.actor, cluster, seconds))
        return answer_with(row)
