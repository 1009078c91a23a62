"""Why a job waits, over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.permissions import job_for
from jobs.readers.wait_explanation import explain_wait


class NamedJobSerializer(serializers.Serializer[Any]):
    """Another job; one of a project that you do not see has neither number nor names."""

    job_id = serializers.IntegerField(allow_null=True)
    project = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True)
    owner = serializers.CharField(allow_blank=True)
    status = serializers.CharField(allow_blank=True)
    has = serializers.CharField(
        allow_blank=True, help_text="What it has of what there is too little of, in words."
    )


class BindingLimitSerializer(serializers.Serializer[Any]):
    """What there is too little of."""

    kind = serializers.CharField(help_text="machines, queue, project, person or group.")
    name = serializers.CharField()
    what = serializers.CharField(help_text="jobs, nodes, gpus, gpus:TYPE, or usd_per_hour.")
    needed = serializers.FloatField()
    used = serializers.FloatField()
    cap = serializers.FloatField()


class WaitingSerializer(serializers.Serializer[Any]):
    """Why a job waits, worked out at this moment."""

    job_id = serializers.IntegerField()
    status = serializers.CharField()
    code = serializers.CharField(help_text="Stable, for programs.")
    reason = serializers.CharField(allow_blank=True, help_text="Its class, as `wait_reason`.")
    sentence = serializers.CharField()
    since = serializers.DateTimeField()
    next_try_at = serializers.DateTimeField(allow_null=True)
    position = serializers.IntegerField(
        allow_null=True, help_text="From 1, among those who wait for the same machines."
    )
    of = serializers.IntegerField(allow_null=True)
    ahead = NamedJobSerializer(many=True, help_text="The next before it, the last ten.")
    limit = BindingLimitSerializer(allow_null=True)
    holders = NamedJobSerializer(many=True, help_text="Who has it, the largest ten.")
    expected_at = serializers.DateTimeField(allow_null=True, help_text="An estimate of its start.")
    basis = serializers.CharField(
        allow_blank=True,
        help_text="`bounds`: at the latest, by max_duration; `past_runs`: probably.",
    )
    no_estimate = serializers.CharField(
        allow_blank=True, help_text="Why there is no estimate, as a sentence, where that is known."
    )


class WhyView(PortalView):
    """`/projects/{slug}/jobs/{id}/why`."""

    @extend_schema(operation_id="job_why", responses={200: WaitingSerializer, **problems(401, 404)})
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Why the job waits: its place, what binds, who has it, and when it probably starts."""
        waiting = explain_wait(self.actor, job_for(self.actor, slug, job_id))
        return Response(WaitingSerializer(waiting).data)
