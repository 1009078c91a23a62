"""The infrastructure on which jobs can run, over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.readers.infra import infra
from monarch_client.wire.clusters import Infra
from monarch_client.wire.page import Page


class InfraListView(PortalView):
    """`/infra`."""

    tag = "clusters"

    @extend_schema(
        operation_id="infra_list",
        responses={200: Page[Infra], **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """List the backends with their clouds and free GPUs, as last known.

        Values older than a minute are requested again, in the background.
        """
        return page_with(infra())
