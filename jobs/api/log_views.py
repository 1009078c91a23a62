"""A job's log over REST: pages by cursor, and the whole of it as text. Live: `log_stream`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.authentication import authenticate
from jobs.api.base import PortalView
from jobs.api.errors import problem_of
from jobs.api.log_inputs import END, DownloadQuery, LogQuery, checked, choice_of
from jobs.api.log_text import LogText
from jobs.api.schema import page_of, problems
from jobs.live.looking import in_thread
from jobs.logs.cursor import START, Cursor
from jobs.permissions import job_for
from jobs.readers.job_log import JobLogLine, JobLogPage, LogChoice, log_after, log_before

# Lines read at once for a download; what they weigh is bounded by the reader.
_DOWNLOAD_LINES = 5000


class LogLineSerializer(serializers.Serializer[Any]):
    """One line. `more`: the next line of its rank goes on with it."""

    line = serializers.IntegerField()
    attempt = serializers.IntegerField()
    rank = serializers.IntegerField()
    stream = serializers.CharField()
    at = serializers.DateTimeField()
    text = serializers.CharField()
    more = serializers.BooleanField()


class LogView(PortalView):
    """`/projects/{slug}/jobs/{id}/logs`."""

    tag = "logs"

    @extend_schema(
        operation_id="log_list",
        parameters=[LogQuery],
        responses={200: page_of(LogLineSerializer), **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Lines in order. `next` goes into `after`, `previous` into `before`."""
        query = checked(LogQuery, request.query_params)
        job = self.job()
        limit, choice = query["limit"], choice_of(query)
        if query["before"] is not None:
            before = None if query["before"] == END else query["before"]
            page = log_before(job.pk, before, limit, choice)
            following = None if before is None else str(page.last)
            previous = str(page.first) if page.is_cut else None
        else:
            page = log_after(job.pk, query["after"] or START, limit, choice)
            following = str(page.last) if page.is_cut else None
            previous = _before(page)
        rows = [line_row(line) for line in page.lines]
        return Response({"results": rows, "next": following, "previous": previous})


def line_row(line: JobLogLine) -> dict[str, Any]:
    """The line as JSON; the same in pages and in the stream."""
    return {**asdict(line), "at": line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def _before(page: JobLogPage) -> str | None:
    """Where to go back from a page that was read forwards."""
    first = page.lines[0].cursor if page.lines else page.first
    return str(first) if first > Cursor(1, 1) else None


@require_safe
async def log_download(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """`/projects/{slug}/jobs/{id}/logs/download`: all of it as plain text, as it is by now."""
    try:
        text, choice = await in_thread(_opened, request, slug, job_id)
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    headers = {"Content-Disposition": f'attachment; filename="job-{job_id}.log"'}
    body = _download(job_id, text, choice)
    return StreamingHttpResponse(body, content_type="text/plain; charset=utf-8", headers=headers)  # type: ignore[return-value]


def _opened(request: HttpRequest, slug: str, job_id: int) -> tuple[LogText, LogChoice]:
    job = job_for(authenticate(request), slug, job_id)
    query = checked(DownloadQuery, request.GET)
    has_ranks = job.num_nodes > 1 and query["rank"] is None
    return LogText(ranks=has_ranks, times=query["times"]), choice_of(query)


async def _download(job_id: int, text: LogText, choice: LogChoice) -> AsyncIterator[bytes]:
    after, is_cut = START, True
    while is_cut:
        page = await in_thread(log_after, job_id, after, _DOWNLOAD_LINES, choice)
        yield text.of(page.lines).encode()
        after, is_cut = page.last, page.is_cut
    yield text.end().encode()
