"""Printing a job's log on standard output, as it would look where the program runs, but safely."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from monarch_client.cli.terminal import safe, tell, write
from monarch_client.runner.vocabulary.monarch_lines import is_own_line
from monarch_client.runner.vocabulary.streams import PORTAL

if TYPE_CHECKING:
    from monarch_client.wire.logs import LogLine

RANK_COLORS = ("cyan", "magenta", "yellow", "green", "blue", "bright_red", "bright_cyan")
# The runner's and the portal's own remarks stand out from what the user's program prints.
_BACK_AND_ERASE = "\r\x1b[K"


class LogPrinter:
    """A printer of log lines, with the node in front if the job has several.

    A progress bar goes back to the begin of its line, and no further; in a pipe, where nothing can
    be drawn over, each state of it is a line. Without `shows_own`, lines that Monarch printed about
    itself are only counted, in `left_out`.
    """

    def __init__(self, *, many_ranks: bool, shows_own: bool = True) -> None:
        self._many_ranks = many_ranks
        self._shows_own = shows_own
        self.left_out = 0
        self._unfinished: LogLine | None = None
        self._over = _BACK_AND_ERASE if sys.stdout.isatty() else "\n"
        # Of the line that is being printed: whether it has text, and is to be drawn over.
        self._has_text = False
        self._is_over = False
        self.count = 0

    def show(self, lines: Iterable[LogLine]) -> None:
        """Print them at once, the pieces of a long line put together again."""
        write("".join(self._pieces(lines)))

    def finish(self) -> None:
        """End a line whose last piece never came."""
        write(self._break())

    def report_left_out(self, job_id: int) -> None:
        """Report how many lines were left out, and how to see them."""
        if self.left_out:
            what = "1 line of Monarch's own output is"
            if self.left_out > 1:
                what = f"{self.left_out} lines of Monarch's own output are"
            tell(f"{what} not shown. To see all lines: mportal logs --all {job_id}")

    def _pieces(self, lines: Iterable[LogLine]) -> Iterator[str]:
        for line in lines:
            self.count += 1
            if not self._shows_own and is_own_line(line.text):
                self.left_out += 1
                continue
            begun = self._unfinished
            if begun is None or _source(begun) != _source(line):
                yield self._break() + self._prefix(line)
                self._has_text = self._is_over = False
            yield from self._text(line)
            if not line.more:
                yield "\n"
            self._unfinished = line if line.more else None

    def _text(self, line: LogLine) -> Iterator[str]:
        first, *others = line.text.split("\r")
        yield from self._part(line, first)
        for part in others:
            self._is_over = self._has_text
            yield from self._part(line, part)

    def _part(self, line: LogLine, part: str) -> Iterator[str]:
        if not part:
            return
        if self._is_over:
            yield self._over + self._prefix(line)
        yield safe(part)
        self._has_text, self._is_over = True, False

    def _break(self) -> str:
        return "\n" if self._unfinished else ""

    def _prefix(self, line: LogLine) -> str:
        if line.stream == PORTAL:
            return click.style("portal | ", dim=True)
        if not self._many_ranks:
            return ""
        color = RANK_COLORS[line.rank % len(RANK_COLORS)]
        return click.style(f"node {line.rank} | ", fg=color)


def _source(line: LogLine) -> tuple[int, int, str]:
    return line.attempt, line.rank, line.stream
