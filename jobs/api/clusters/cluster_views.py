"""Clusters over REST: what exists, and taking it down."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.clusters.stop import stop_cluster
from jobs.actions.clusters.strays import take_down_stray
from jobs.actions.clusters.take_down import take_down_cluster
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.readers.clusters import (
    cluster_anywhere,
    cluster_list,
    cluster_named,
    cluster_row,
    stray_row,
)
from monarch_client.wire.clusters import Cluster
from monarch_client.wire.page import Page

CLUSTERS = Page[Cluster]


class ClusterView(PortalView):
    """A view of clusters."""

    tag = "clusters"


class ClusterListView(ClusterView):
    """`/projects/{slug}/clusters`."""

    @extend_schema(
        operation_id="cluster_list",
        responses={200: CLUSTERS, **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the project's clusters that exist, newest first."""
        rows = cluster_list(self.actor, self.project())
        return page_with(rows)


class ClusterDownView(ClusterView):
    """`/projects/{slug}/clusters/{name}/actions/down`."""

    @extend_schema(
        operation_id="cluster_down",
        request=None,
        responses={202: Cluster, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, slug: str, cluster_name: str) -> Response:
        """Take down a cluster on which no job is. It is over when the list shows it no more."""
        cluster = cluster_named(self.actor, self.project(), cluster_name)
        row = cluster_row(self.actor, take_down_cluster(self.actor, cluster))
        return answer_with(row, 202)


class ClusterStopView(ClusterView):
    """`/projects/{slug}/clusters/{name}/actions/stop`."""

    @extend_schema(
        operation_id="cluster_stop",
        request=None,
        responses={202: Cluster, **problems(401, 403, 404, 409, 503)},
    )
    def post(self, request: Request, slug: str, cluster_name: str) -> Response:
        """Stop the machines of an idle cluster and keep their disks."""
        cluster = cluster_named(self.actor, self.project(), cluster_name)
        row = cluster_row(self.actor, stop_cluster(self.actor, cluster))
        return answer_with(row, 202)


class AllClustersView(ClusterView):
    """`/clusters`."""

    @extend_schema(
        operation_id="cluster_list_all",
        responses={200: CLUSTERS, **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """List the clusters of all your projects; administrators of the installation get all."""
        return page_with(cluster_list(self.actor))


class AnyClusterDownView(ClusterView):
    """`/clusters/{name}/actions/down`."""

    @extend_schema(
        operation_id="cluster_down_any",
        request=None,
        responses={202: Cluster, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, cluster_name: str) -> Response:
        """Take down a cluster by its name alone: also one without a row, but never a stranger's."""
        cluster = cluster_anywhere(self.actor, cluster_name)
        if cluster is not None:
            row = cluster_row(self.actor, take_down_cluster(self.actor, cluster))
        else:
            row = stray_row(self.actor, take_down_stray(self.actor, cluster_name))
        return answer_with(row, 202)
