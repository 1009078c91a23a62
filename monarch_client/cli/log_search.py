"""mportal logs --grep: lines that match, found by the portal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from monarch_client.cli.moments import Moment
from monarch_client.errors import RefusedError

if TYPE_CHECKING:
    from monarch_client import rest
    from monarch_client.wire.jobs import Job
    from monarch_client.wire.logs import LogLine

C = TypeVar("C", bound=Callable[..., Any])
PAGE = 1000
LEVELS = ("error", "warning")
_OPTIONS = ("grep", "fixed", "ignore_case", "level", "since")
_NO_PATTERN = frozenset({"invalid_pattern", "search_too_slow"})


def search_options(command: C) -> C:
    """Add the options that turn reading a log into searching it."""
    for option in (
        click.option(
            "--since", type=Moment(), help="Only lines since 10m ago, or since an ISO time."
        ),
        click.option(
            "--level",
            "-l",
            type=click.Choice(LEVELS),
            help="Only lines that look like errors, or like warnings or errors.",
        ),
        click.option("--ignore-case", "-i", is_flag=True, help="With --grep: ignore case."),
        click.option("--fixed", "-F", is_flag=True, help="With --grep: match plain text."),
        click.option(
            "--grep", "-g", metavar="PATTERN", help="Only lines that match this RE2 pattern."
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class SearchRequest:
    """A search that the command line requests."""

    grep: str | None
    fixed: bool
    ignore_case: bool
    level: str | None
    since: str | None

    @classmethod
    def take(cls, options: dict[str, Any]) -> SearchRequest:
        """Take it out of all options."""
        return cls(*(options.pop(name) for name in _OPTIONS))

    @property
    def is_search(self) -> bool:
        """Whether the portal is to search, not just to read."""
        return any(value is not None for value in (self.grep, self.level, self.since))

    def check(self, *, following: bool, job_id: int) -> None:
        """Refuse what does not go together."""
        if following and self.is_search:
            raise click.UsageError(
                "--grep, --level and --since look at what is there already. To filter a log as it "
                f"goes on: mportal logs -f {job_id} | grep PATTERN"
            )
        if self.grep is None and (self.fixed or self.ignore_case):
            raise click.UsageError("-F and -i say how --grep compares; give --grep PATTERN too.")


class Search:
    """Searching the lines of `job` that `choice` (rank, stream, attempt) names."""

    def __init__(
        self, client: rest.PortalClient, job: Job, choice: dict[str, Any], request: SearchRequest
    ) -> None:
        self._client = client
        self._job = job
        self._question = {
            **choice,
            "regex": None if request.fixed or request.grep is None else "true",
            "case": None if request.ignore_case else "true",
            "level": request.level,
            "since": request.since,
        }
        self._words = request.grep or ""
        # Of which attempts the log was removed, once something was looked through.
        self.removed = ""

    def pages(self, tail: int | None) -> Iterator[list[LogLine]]:
        """Yield all matches as they are found; or the last `tail` of them, at the end."""
        if tail is None:
            yield from self._all()
            return
        last: deque[LogLine] = deque(maxlen=tail)
        for lines in self._all():
            last.extend(lines)
        yield list(last)

    def _all(self) -> Iterator[list[LogLine]]:
        after: str | None = ""
        while after is not None:
            page = self._page(after)
            self.removed = page.removed
            # A piece of a very long line is on its own: the next piece may not match.
            yield [replace(line, more=False) for line in page.results]
            after = page.next

    def _page(self, after: str) -> Any:
        try:
            return self._client.search_log(
                self._job.project,
                self._job.id,
                self._words,
                **self._question,
                after=after,
                limit=PAGE,
            )
        except RefusedError as error:
            if error.portal_code in _NO_PATTERN:
                raise click.BadParameter(error.message, param_hint="--grep") from error
            raise
