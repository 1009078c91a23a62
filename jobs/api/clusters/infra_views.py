"""Where jobs can run, over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import page_of, problems
from jobs.api.clusters.cluster_serializers import InfraSerializer
from jobs.readers.infra import infra


class InfraListView(PortalView):
    """`/infra`."""

    tag = "clusters"

    @extend_schema(
        operation_id="infra_list",
        responses={200: page_of(InfraSerializer), **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """Backends with their clouds and free GPUs, as last known.

        What is older than a minute is asked for anew, in the background.
        """
        body = InfraSerializer(infra(), many=True).data
        return Response({"results": body, "next": None, "previous": None})
