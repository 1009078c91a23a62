"""A job's log over REST: pages by cursor, and the whole of it as text. Live: `log_stream`."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any, Protocol

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


# Of zlib: with the header and the end of a gzip file, and quick rather than small.
_GZIP_WINDOW, _GZIP_LEVEL = 31, 4


class Packer(Protocol):
    """Compresses piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """What is ready of all data so far."""

    def flush(self) -> bytes:
        """The rest."""


def gzip_packer() -> Packer:
    """One that makes a gzip file."""
    return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)


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
    """`/projects/{slug}/jobs/{id}/logs/download`: all of it as plain text, as it is by now.

    As a gzip file when asked for one; else compressed on its way to whoever takes that.
    """
    try:
        text, choice, is_file = await in_thread(_opened, request, slug, job_id)
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    name, kind = f"job-{job_id}.log", "text/plain; charset=utf-8"
    headers = {}
    if is_file:
        name, kind = f"{name}.gz", "application/gzip"
    else:
        headers["Vary"] = "Accept-Encoding"
    is_packed = is_file or _takes_gzip(request)
    if is_packed and not is_file:
        headers["Content-Encoding"] = "gzip"
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    body = _download(job_id, text, choice, gzip_packer() if is_packed else None)
    return StreamingHttpResponse(body, content_type=kind, headers=headers)  # type: ignore[return-value]


def _opened(request: HttpRequest, slug: str, job_id: int) -> tuple[LogText, LogChoice, bool]:
    job = job_for(authenticate(request), slug, job_id)
    query = checked(DownloadQuery, request.GET)
    has_ranks = job.num_nodes > 1 and query["rank"] is None
    text = LogText(ranks=has_ranks, times=query["times"])
    return text, choice_of(query), query["format"] == "gzip"


def _takes_gzip(request: HttpRequest) -> bool:
    """Whether the caller says so; `gzip;q=0` says that it does not."""
    for coding in request.headers.get("Accept-Encoding", "").split(","):
        name, *parameters = coding.replace(" ", "").lower().split(";")
        if name == "gzip":
            return not any(each in {"q=0", "q=0.0", "q=0.00", "q=0.000"} for each in parameters)
    return False


async def _download(
    job_id: int, text: LogText, choice: LogChoice, packer: Packer | None
) -> AsyncIterator[bytes]:
    def piece(after: Cursor) -> tuple[bytes, Cursor, bool]:
        page = log_after(job_id, after, _DOWNLOAD_LINES, choice)
        raw = text.of(page.lines).encode()
        if not page.is_cut:
            raw += text.end().encode()
        return packer.compress(raw) if packer else raw, page.last, page.is_cut

    after, is_cut = START, True
    while is_cut:
        packed, after, is_cut = await in_thread(piece, after)
        if packed:
            yield packed
    if packer:
        yield packer.flush()
