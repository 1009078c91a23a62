"""The hosts, procs and actors of a job's meshes."""

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
from jobs.readers.mesh import job_mesh


class MeshActorSerializer(serializers.Serializer[Any]):
    """An actor of a proc."""

    id = serializers.CharField()
    kind = serializers.CharField(allow_blank=True, help_text="Its class.")
    state = serializers.CharField(help_text="running, failed, stopped or unknown.")
    told = serializers.CharField(help_text="The state when it was last heard of.")
    doing = serializers.CharField(allow_blank=True, help_text="In Monarch's own words.")
    messages = serializers.IntegerField(help_text="How many it has handled.")
    why = serializers.CharField(allow_blank=True, help_text="Its failure.")


class MeshProcSerializer(serializers.Serializer[Any]):
    """A process of a mesh."""

    id = serializers.CharField()
    state = serializers.CharField(help_text="alive, dead, silent, poisoned or unknown.")
    told = serializers.CharField()
    why = serializers.CharField(allow_blank=True, help_text="What was asked, and what answered.")
    left_out = serializers.IntegerField(help_text="Actors that are not listed.")
    actors = MeshActorSerializer(many=True)


class MeshHostSerializer(serializers.Serializer[Any]):
    """A host of a mesh, or, without a rank, the driver's own side."""

    id = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)
    mesh = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text="up, ended, unreachable or unknown.")
    told = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    left_out = serializers.IntegerField(help_text="Procs that are not listed.")
    procs = MeshProcSerializer(many=True)


class MeshLineSerializer(serializers.Serializer[Any]):
    """A line of the log."""

    number = serializers.IntegerField()
    stream = serializers.CharField()
    at = serializers.DateTimeField()
    text = serializers.CharField(allow_blank=True, trim_whitespace=False)


class MeshChangeSerializer(serializers.Serializer[Any]):
    """Something began to fail, or fails no longer."""

    at = serializers.DateTimeField()
    rank = serializers.IntegerField(allow_null=True)
    host = serializers.CharField(allow_blank=True, help_text="Empty: all of them.")
    proc = serializers.CharField(allow_blank=True, help_text="Empty: the host.")
    actor = serializers.CharField(allow_blank=True, help_text="Empty: the proc or host.")
    state = serializers.CharField()
    was = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    is_failure = serializers.BooleanField()
    lines = MeshLineSerializer(
        many=True, help_text="The last ones of its rank by then, of the latest losses."
    )


class MeshSerializer(serializers.Serializer[Any]):
    """The meshes of one attempt."""

    attempt = serializers.IntegerField(allow_null=True, help_text="Its number.")
    is_monarch = serializers.BooleanField(help_text="Else there are no meshes.")
    is_over = serializers.BooleanField()
    is_final = serializers.BooleanField(
        help_text="It is over, and no other attempt will be shown in its place."
    )
    is_known = serializers.BooleanField(
        help_text="Whether the states are those of now, or of the end."
    )
    at = serializers.DateTimeField(allow_null=True, help_text="When something was last told.")
    why = serializers.CharField(allow_blank=True, help_text="Why the states are not known.")
    left_out = serializers.IntegerField(help_text="Hosts that are not listed.")
    hosts = MeshHostSerializer(many=True)
    changes = MeshChangeSerializer(many=True, help_text="Newest first.")


class MeshView(PortalView):
    """`/projects/{slug}/jobs/{id}/mesh`."""

    @extend_schema(
        operation_id="job_mesh",
        parameters=[AttemptQuery],
        responses={200: MeshSerializer, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Hosts, procs and actors of an attempt as last told, and what failed when."""
        query = checked(AttemptQuery, request.query_params)
        return Response(MeshSerializer(job_mesh(self.actor, slug, job_id, query["attempt"])).data)
