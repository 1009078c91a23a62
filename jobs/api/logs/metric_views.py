"""What the hosts of a job told of their processors, memory and GPUs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.inputs import AttemptQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import checked
from jobs.readers.host_metrics import HostChoice, host_metrics


def _numbers() -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True))


class MetricsQuery(AttemptQuery):
    """Of which attempt, and whose history."""

    rank = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The host whose history is wanted.",
    )


class HostGpuSerializer(serializers.Serializer[Any]):
    """One GPU. Null: it did not tell."""

    index = serializers.IntegerField()
    name = serializers.CharField(allow_blank=True)
    utilization = serializers.FloatField(allow_null=True, help_text="Per cent.")
    memory_used = serializers.IntegerField(allow_null=True, help_text="Bytes.")
    memory_total = serializers.IntegerField(allow_null=True)
    celsius = serializers.FloatField(allow_null=True)
    watts = serializers.FloatField(allow_null=True)


class HostSerializer(serializers.Serializer[Any]):
    """The latest that a host told; null what it did not."""

    rank = serializers.IntegerField()
    mesh = serializers.CharField(allow_blank=True)
    address = serializers.CharField(allow_blank=True)
    status = serializers.CharField(allow_blank=True, help_text="Of its worker.")
    at = serializers.DateTimeField(allow_null=True, help_text="When it told this.")
    is_silent = serializers.BooleanField(help_text="Nothing came for a minute while it should.")
    cpu = serializers.FloatField(allow_null=True, help_text="Per cent of all its processors.")
    cpus = serializers.IntegerField(allow_null=True)
    memory_used = serializers.IntegerField(allow_null=True, help_text="Bytes.")
    memory_total = serializers.IntegerField(allow_null=True)
    disk_used = serializers.IntegerField(allow_null=True)
    disk_total = serializers.IntegerField(allow_null=True)
    net_in = serializers.FloatField(allow_null=True, help_text="Bytes a second.")
    net_out = serializers.FloatField(allow_null=True)
    gpus = HostGpuSerializer(many=True)


class ColumnsSerializer(serializers.Serializer[Any]):
    """All of one length. `t`: seconds since 1970; per cent, or bytes a second."""

    t = serializers.ListField(child=serializers.FloatField())
    cpu = _numbers()
    memory = _numbers()
    disk = _numbers()
    net_in = _numbers()
    net_out = _numbers()
    gpu = serializers.ListField(child=_numbers(), help_text="A list for each GPU.")
    gpu_memory = serializers.ListField(child=_numbers())


class SeriesSerializer(serializers.Serializer[Any]):
    """The history of one host, at most some 750 points."""

    rank = serializers.IntegerField()
    step_s = serializers.FloatField(help_text="How far apart older points are; 0: as they came.")
    columns = ColumnsSerializer()


class HostsSerializer(serializers.Serializer[Any]):
    """The hosts of one attempt, by rank."""

    attempt = serializers.IntegerField(allow_null=True, help_text="Its number.")
    is_over = serializers.BooleanField()
    is_final = serializers.BooleanField(
        help_text="It is over, and no other attempt will be shown in its place."
    )
    hosts = HostSerializer(many=True)
    series = SeriesSerializer(allow_null=True)


class MetricsView(PortalView):
    """`/projects/{slug}/jobs/{id}/metrics`."""

    @extend_schema(
        operation_id="job_metrics",
        parameters=[MetricsQuery],
        responses={200: HostsSerializer, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """The latest of all hosts of an attempt, and the history of one of them."""
        query = checked(MetricsQuery, request.query_params)
        found = host_metrics(self.actor, slug, job_id, HostChoice(**query))
        return Response(HostsSerializer(found).data)
