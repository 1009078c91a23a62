"""Queues, pools, quotas and shares: all users read, administrators of the installation set."""

from __future__ import annotations

from datetime import timedelta

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.sharing.pools import PoolChange, delete_pool, set_pool
from jobs.actions.sharing.queues import QueueChange, delete_queue, set_queue
from jobs.actions.sharing.quotas import Whose, delete_quota, set_quota, set_weight
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.inputs import PageQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.queue.queue_inputs import (
    PoolBody,
    QueueBody,
    QuotaBody,
    TimelineQuery,
    WeightBody,
)
from jobs.readers.queue_state import QueueState
from jobs.readers.timeline import timeline
from monarch_client.wire.page import Page
from monarch_client.wire.queue import Place, Queue, Quota, Share, Turn, Weight
from monarch_client.wire.timeline import Timeline

_READS, _SETS, _DELETES = problems(401), problems(400, 401, 403, 422), problems(401, 403, 404)
# A name that no address can have is not found.
_SETS_NAMED = {**_SETS, **problems(404)}


# Two lists of quotas, one name in the description.
_QUOTA_PAGE = Page[Quota]


class PoolListView(PortalView):
    """`/pools`."""

    tag = "queue"

    @extend_schema(operation_id="pool_list", responses={200: Page[Place], **_READS})
    def get(self, request: Request) -> Response:
        """List the machines by pool, then by backend, with what is in use of each now."""
        return page_with(QueueState(self.actor).pools())


class PoolView(PortalView):
    """`/pools/{name}`."""

    tag = "queue"

    @extend_schema(operation_id="pool_set", request=PoolBody, responses={200: Place, **_SETS_NAMED})
    def put(self, request: Request, name: str) -> Response:
        """Make a pool, or change what is named of it."""
        set_pool(self.actor, name, PoolChange(**self.parsed(PoolBody, request.data)))
        rows = QueueState(self.actor).pools()
        made = next(row for row in rows if (row.kind, row.name) == ("pool", name))
        return answer_with(made)

    @extend_schema(operation_id="pool_delete", responses={204: None, **_DELETES, **problems(409)})
    def delete(self, request: Request, name: str) -> Response:
        """Forget it with the quotas that hold in it alone. 409 while queues use it."""
        delete_pool(self.actor, name)
        return Response(status=204)


class QueueListView(PortalView):
    """`/queues`."""

    tag = "queue"

    @extend_schema(operation_id="queue_list", responses={200: Page[Queue], **_READS})
    def get(self, request: Request) -> Response:
        """List the queues, the highest rank first, with their waiting, held and running jobs."""
        return page_with(QueueState(self.actor).queues())


class QueueView(PortalView):
    """`/queues/{name}`."""

    tag = "queue"

    @extend_schema(
        operation_id="queue_set", request=QueueBody, responses={200: Queue, **_SETS_NAMED}
    )
    def put(self, request: Request, name: str) -> Response:
        """Make a queue, or change what is named of it."""
        set_queue(self.actor, name, QueueChange(**self.parsed(QueueBody, request.data)))
        made = next(row for row in QueueState(self.actor).queues() if row.name == name)
        return answer_with(made)

    @extend_schema(operation_id="queue_delete", responses={204: None, **_DELETES, **problems(409)})
    def delete(self, request: Request, name: str) -> Response:
        """Forget it with its quotas. 409 while jobs wait or run in it."""
        delete_queue(self.actor, name)
        return Response(status=204)


class WaitingView(PortalView):
    """`/queue`."""

    tag = "queue"

    @extend_schema(
        operation_id="queue_waiting",
        parameters=[PageQuery],
        responses={200: Page[Turn], **problems(400, 401)},
    )
    def get(self, request: Request) -> Response:
        """List the queued jobs in scheduling order."""
        query = self.parsed(PageQuery, request.query_params)
        begin, limit = query["cursor"], query["limit"]
        state = QueueState(self.actor)
        rows = state.waiting(begin, limit)
        after = str(begin + limit) if begin + limit < state.number_waiting else None
        before = str(max(0, begin - limit)) if begin else None
        return page_with(rows, next=after, previous=before)


class TimelineView(PortalView):
    """`/queue/timeline`."""

    tag = "queue"

    @extend_schema(
        operation_id="queue_timeline",
        parameters=[TimelineQuery],
        responses={200: Timeline, **problems(400, 401)},
    )
    def get(self, request: Request) -> Response:
        """Show what has machines from when until when, and the expected starts of queued jobs."""
        query = self.parsed(TimelineQuery, request.query_params)
        return answer_with(timeline(self.actor, timedelta(hours=query["hours"])))


class QuotaListView(PortalView):
    """`/quotas`."""

    tag = "queue"

    @extend_schema(operation_id="quota_list", responses={200: _QUOTA_PAGE, **_READS})
    def get(self, request: Request) -> Response:
        """List the quotas of queues and of your projects, with what is in use of each now."""
        return page_with(QueueState(self.actor).quotas())

    @extend_schema(operation_id="quota_set", request=QuotaBody, responses={200: Quota, **_SETS})
    def post(self, request: Request) -> Response:
        """Set how much may run at once: a new quota, or other amounts of the one there is."""
        body = self.parsed(QuotaBody, request.data)
        caps, nominal = body.pop("caps"), body.pop("nominal")
        quota = set_quota(self.actor, Whose(**body), caps, nominal)
        made = next(row for row in QueueState(self.actor).quotas() if row.id == quota.pk)
        return answer_with(made)


class QuotaView(PortalView):
    """`/quotas/{id}`."""

    tag = "queue"

    @extend_schema(operation_id="quota_delete", responses={204: None, **_DELETES})
    def delete(self, request: Request, quota_id: int) -> Response:
        """Take a quota away."""
        delete_quota(self.actor, quota_id)
        return Response(status=204)


class ProjectQuotaListView(PortalView):
    """`/projects/{slug}/quotas`."""

    tag = "queue"

    @extend_schema(
        operation_id="project_quota_list",
        responses={200: _QUOTA_PAGE, **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the quotas of one project, with what is in use of each now."""
        return page_with(QueueState(self.actor).quotas(self.project()))


class ShareListView(PortalView):
    """`/shares`."""

    tag = "queue"

    @extend_schema(operation_id="share_list", responses={200: Page[Share], **_READS})
    def get(self, request: Request) -> Response:
        """List the usage of projects by pool or backend; the least weighted usage comes first."""
        return page_with(QueueState(self.actor).shares())


class WeightView(PortalView):
    """`/projects/{slug}/weight`."""

    tag = "queue"

    @extend_schema(
        operation_id="weight_set",
        request=WeightBody,
        responses={200: Weight, **_SETS_NAMED},
    )
    def put(self, request: Request, slug: str) -> Response:
        """Say how much of a pool a project may have beside others, as a proportion."""
        body = self.parsed(WeightBody, request.data)
        project = set_weight(self.actor, slug, body["weight"])
        return answer_with(Weight(project=project.slug, weight=project.share_weight))
