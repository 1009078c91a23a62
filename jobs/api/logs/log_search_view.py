"""Searching a job's log over REST, a bounded stretch of it with each request."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import SearchQuery, checked, question_of
from jobs.api.logs.log_views import line_row
from jobs.logs.cursor import START
from jobs.readers.log_search import search_log
from jobs.readers.removed_logs import removed_logs
from monarch_client.wire.logs import LogHit, LogHitPage


class LogSearchView(PortalView):
    """`/projects/{slug}/jobs/{id}/logs/search`."""

    tag = "logs"

    @extend_schema(
        operation_id="log_search",
        parameters=[SearchQuery],
        responses={200: LogHitPage[LogHit], **problems(400, 401, 404, 503)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """List the lines that match, in order. While `next` is not null, pass it as `after`.

        A request looks at a bounded stretch: no results and a `next` mean that there was none in
        it. `last` is how far it looked; lines that are written later are found from there on.
        `removed` as for pages of the log.
        """
        query = checked(SearchQuery, request.query_params)
        job = self.job()
        found = search_log(
            job.pk,
            question_of(query),
            after=query["after"] or START,
            limit=query["limit"],
            attempt=query["attempt"],
        )
        return answer_with(
            LogHitPage(
                results=[line_row(hit) for hit in found.hits],
                next=str(found.last) if found.is_cut else None,
                previous=None,
                last=str(found.last),
                removed=removed_logs(job.pk, query["attempt"]),
                scanned_bytes=found.scanned_bytes,
            )
        )
