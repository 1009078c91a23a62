"""A job's log over REST: pages by cursor, and the whole of it as text. Live: `log_stream`."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.authentication import WITH_DRIVERS, authenticate
from jobs.api.base.errors import problem_of
from jobs.api.base.methods import only
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import END, DownloadQuery, LogQuery, checked, choice_of
from jobs.api.logs.log_text import LogText
from jobs.live.looking import in_thread
from jobs.logs.cursor import START, Cursor
from jobs.models import Job
from jobs.permissions import job_for
from jobs.readers.job_log import JobLogLine, JobLogPage, log_after, log_before
from jobs.readers.removed_logs import removed_logs
from monarch_client.wire.logs import LogLine, LogPage

# Lines read at once for a download; what they weigh is bounded by the reader.
_DOWNLOAD_LINES = 5000


# Of zlib: with the header and the end of a gzip file, and quick rather than small.
_GZIP_WINDOW, _GZIP_LEVEL = 31, 4


class Packer(Protocol):
    """Compresses piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress `data`; return the output that is ready so far."""

    def flush(self) -> bytes:
        """Return the rest of the output."""


def gzip_packer() -> Packer:
    """Make a packer that writes a gzip file."""
    return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)


class LogView(PortalView):
    """`/projects/{slug}/jobs/{id}/logs`."""

    authentication_classes: Any = WITH_DRIVERS

    tag = "logs"

    @extend_schema(
        operation_id="log_list",
        parameters=[LogQuery],
        responses={200: LogPage[LogLine], **problems(400, 401, 404, 503)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Return lines in order. `next` goes into `after`, `previous` into `before`.

        `removed` names the attempts whose logs were removed for their age; empty if none were.
        """
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
        found = LogPage(
            results=[line_row(line) for line in page.lines],
            next=following,
            previous=previous,
            removed=removed_logs(job.pk, choice.attempt),
        )
        return answer_with(found)


def line_row(line: LogLine) -> dict[str, Any]:
    """Return the line as JSON, with milliseconds: the same in pages and in the stream."""
    at = line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {**msgspec.to_builtins(line), "at": at}


def _before(page: JobLogPage[JobLogLine]) -> str | None:
    """Return the cursor to go back to from a page that was read forwards."""
    first = page.lines[0].cursor if page.lines else page.first
    return str(first) if first > Cursor(1, 1) else None


class Download:
    """One reader's way through a log, piece by piece."""

    def __init__(self, job: Job, query: dict[str, Any]) -> None:
        has_ranks = job.num_hosts > 1 and query["rank"] is None
        self._text = LogText(ranks=has_ranks, times=query["times"])
        self._job_id = job.pk
        self._choice = choice_of(query)
        self._after = START
        self.is_file = query["format"] == "gzip"
        self.is_over = False

    def first_piece(self) -> bytes:
        """Return the begin: which logs were removed, if any, and the first lines."""
        removed = removed_logs(self._job_id, self._choice.attempt)
        return (f"[portal] {removed}\n".encode() if removed else b"") + self.piece()

    def piece(self) -> bytes:
        """Return the next lines."""
        page = log_after(self._job_id, self._after, _DOWNLOAD_LINES, self._choice)
        self._after, self.is_over = page.last, not page.is_cut
        text = self._text.of(page.lines)
        return (text + self._text.end() if self.is_over else text).encode()


@only("GET", "HEAD")
def log_download(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Answer `/projects/{slug}/jobs/{id}/logs/download`: the log as plain text, as it is by now.

    As a gzip file if requested; else compressed in transit for a client that accepts it.
    """
    try:
        download, begin = _opened(request, slug, job_id)
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    name, kind = f"job-{job_id}.log", "text/plain; charset=utf-8"
    headers = {}
    if download.is_file:
        name, kind = f"{name}.gz", "application/gzip"
    else:
        headers["Vary"] = "Accept-Encoding"
    is_packed = download.is_file or _takes_gzip(request)
    if is_packed and not download.is_file:
        headers["Content-Encoding"] = "gzip"
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    body = _body(download, begin, gzip_packer() if is_packed else None)
    return StreamingHttpResponse(body, content_type=kind, headers=headers)  # type: ignore[return-value]


def _opened(request: HttpRequest, slug: str, job_id: int) -> tuple[Download, bytes]:
    """Open the download and read its begin, so that an unreadable log is answered as a problem."""
    query = checked(DownloadQuery, request.GET)
    download = Download(job_for(authenticate(request), slug, job_id), query)
    return download, download.first_piece()


def _takes_gzip(request: HttpRequest) -> bool:
    """Whether the caller accepts gzip; `gzip;q=0` means that it does not."""
    for coding in request.headers.get("Accept-Encoding", "").split(","):
        name, *parameters = coding.replace(" ", "").lower().split(";")
        if name == "gzip":
            return not any(each in {"q=0", "q=0.0", "q=0.00", "q=0.000"} for each in parameters)
    return False


async def _body(download: Download, begin: bytes, packer: Packer | None) -> AsyncIterator[bytes]:
    def packed(piece: bytes) -> bytes:
        return packer.compress(piece) if packer else piece

    ready = await in_thread(packed, begin)
    while True:
        if ready:
            yield ready
        if download.is_over:
            break
        ready = await in_thread(lambda: packed(download.piece()))
    if packer:
        yield packer.flush()
