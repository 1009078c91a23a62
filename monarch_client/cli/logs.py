"""mportal logs: what a job printed, so far or as it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import NOTHING_FOUND
from monarch_client.cli.log_printer import LogPrinter
from monarch_client.cli.log_search import Search, SearchRequest, search_options
from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import one_line, tell
from monarch_client.errors import UnknownNameError
from monarch_client.runner.vocabulary.streams import STREAMS

if TYPE_CHECKING:
    from monarch_client import rest
    from monarch_client.wire.jobs import Job
    from monarch_client.wire.logs import LogLine
    from monarch_client.wire.page import Page

PAGE = 1000


@click.command(
    epilog=examples(
        "mportal logs 42 -f",
        "mportal logs ppo -r 3 -n 100",
        'mportal logs ppo --grep "loss=nan" --since 1h',
    )
)
@job_argument
@project_option
@click.option(
    "--follow", "-f", is_flag=True, help="Follow the log until the job ends; exit with its code."
)
@click.option(
    "--node", "--rank", "-r", "rank", type=click.IntRange(0), help="Only lines of this node."
)
@click.option("--stream", "-s", type=click.Choice(STREAMS), help="Only lines of this stream.")
@click.option("--attempt", "-a", type=click.IntRange(1), help="Only lines of this attempt.")
@click.option("--tail", "-n", type=click.IntRange(0), help="Start this many lines before the end.")
@click.option(
    "--all", "shows_own", is_flag=True, help="Also print the lines of Monarch's own output."
)
@search_options
@pass_session
def logs(session: Session, /, job_id: int, project: str | None, **options: Any) -> None:
    """Print a job's log."""
    follow, tail, request = options.pop("follow"), options.pop("tail"), SearchRequest.take(options)
    shows_own = options.pop("shows_own") or request.is_search
    request.check(following=follow, job_id=job_id)
    job = session.client.job(session.project(project), job_id)
    _check(session.client, job, options)
    if follow:
        from monarch_client.cli.follow import JobView  # noqa: PLC0415 - HTTP takes 60 ms

        code = JobView(session.client, job, shows_own=shows_own).follow(tail, options)
        click.get_current_context().exit(code)
    printer = LogPrinter(many_ranks=job.num_nodes > 1, shows_own=shows_own)
    if request.is_search:
        search = Search(session.client, job, options, request)
        for lines in search.pages(tail):
            printer.show(lines)
        _warn_of_removed(search.removed)
        click.get_current_context().exit(0 if printer.count else NOTHING_FOUND)
    reading = _Reading(session.client, job, options)
    for lines in reading.pages() if tail is None else [reading.tail(tail)]:
        printer.show(lines)
    printer.finish()
    printer.report_left_out(job_id)
    _warn_of_removed(reading.removed)
    if not printer.count and tail != 0:
        if not reading.removed:
            tell(_nothing(session.client, job, options))
        narrowed = any(value is not None for value in options.values())
        click.get_current_context().exit(NOTHING_FOUND if narrowed else 0)


def _warn_of_removed(removed: str) -> None:
    if removed:
        tell(one_line(removed))


def _check(client: rest.PortalClient, job: Job, choice: dict[str, Any]) -> None:
    """Refuse a rank or an attempt that the job does not have: its log would be empty for ever."""
    rank, attempt = choice["rank"], choice["attempt"]
    if rank is not None and rank >= job.num_nodes:
        nodes = f"0 to {job.num_nodes - 1}" if job.num_nodes > 1 else "0 alone"
        raise UnknownNameError(f"Job {job.id} has no node {rank}, but {nodes}.")
    if attempt is None:
        return
    numbers = sorted(each.number for each in client.attempts(job.project, job.id, workers="none"))
    if attempt not in numbers:
        there = ", ".join(map(str, numbers))
        raise UnknownNameError(
            f"Job {job.id} has no attempt {attempt}; "
            + (f"there is: {there}." if numbers else f"none has begun, it is {job.status_label}.")
        )


def _nothing(client: rest.PortalClient, job: Job, choice: dict[str, Any]) -> str:
    """Return the message for no such line; for a stream, name streams that have some."""
    so_far = "" if job.is_final else " so far"
    wanted = choice["stream"]
    if wanted is None:
        return f"Job {job.id} printed nothing{so_far}."
    some = [
        stream
        for stream in STREAMS
        if client.logs(job.project, job.id, **{**choice, "stream": stream}, limit=1).results
    ]
    others = f" There are lines of {', '.join(some)}." if some else ""
    return f"Job {job.id} has no line of {wanted}{so_far}.{others}"


class _Reading:
    """Reading the lines there are, of those that `choice` (rank, stream, attempt) names."""

    def __init__(self, client: rest.PortalClient, job: Job, choice: dict[str, Any]) -> None:
        self._client = client
        self._job = job
        self._choice = choice
        # Of which attempts the log was removed, once something was read.
        self.removed = ""

    def pages(self) -> Iterator[list[LogLine]]:
        """Yield all lines from the first to the last, page by page."""
        after: str | None = ""
        while after is not None:
            page = self._page(after=after, limit=PAGE)
            yield page.results
            after = page.next

    def tail(self, count: int) -> list[LogLine]:
        """Return the last `count` lines, in order."""
        lines: list[LogLine] = []
        before: str | None = "end"
        while before is not None and len(lines) < count:
            page = self._page(before=before, limit=min(PAGE, count - len(lines)))
            lines = page.results + lines
            before = page.previous
        return lines

    def _page(self, **bounds: Any) -> Page[LogLine]:
        page = self._client.logs(self._job.project, self._job.id, **bounds, **self._choice)
        self.removed = page.removed
        return page
