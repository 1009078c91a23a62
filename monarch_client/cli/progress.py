"""Showing a job as it goes: stages and remarks on standard error, its log on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import click

from monarch_client.cli.output import STATUS_COLOURS, duration
from monarch_client.rest.models import Attempt, Job, LogLine, Stage

RANK_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_red", "bright_cyan")
_MARKS = {"active": "▸", "done": "✓", "failed": "✗"}
_ASCII_MARKS = {"active": ">", "done": "+", "failed": "x"}
# The runner's and the portal's own remarks stand out from what the user's program prints.
_OWN_STREAM = "portal"


class LogPrinter:
    """Prints log lines; with a rank in front when the job has several."""

    def __init__(self, *, many_ranks: bool) -> None:
        self._many_ranks = many_ranks
        self._unfinished: LogLine | None = None

    def show(self, lines: Iterable[LogLine]) -> None:
        """Print them at once, the pieces of a long line put together again."""
        click.echo("".join(self._pieces(lines)), nl=False)

    def finish(self) -> None:
        """End a line whose last piece never came."""
        click.echo(self._break(), nl=False)

    def _pieces(self, lines: Iterable[LogLine]) -> Iterator[str]:
        for line in lines:
            begun = self._unfinished
            if begun is None or _source(begun) != _source(line):
                yield self._break() + self._prefix(line)
            yield line.text if line.more else f"{line.text}\n"
            self._unfinished = line if line.more else None

    def _break(self) -> str:
        return "\n" if self._unfinished else ""

    def _prefix(self, line: LogLine) -> str:
        if line.stream == _OWN_STREAM:
            return click.style("portal | ", dim=True)
        if not self._many_ranks:
            return ""
        colour = RANK_COLOURS[line.rank % len(RANK_COLOURS)]
        return click.style(f"rank {line.rank} | ", fg=colour)


@dataclass
class Progress:
    """Prints each change of a job once."""

    _shown: set[tuple[object, ...]] = field(default_factory=set)

    def submitted(self, job: Job) -> None:
        """Where the new job can be seen."""
        _tell(f"Job {job.id} ({job.name}): {job.url}")

    def show(self, job: Job, attempts: Iterable[Attempt]) -> None:
        """Print what is new since the last call."""
        if job.status == "QUEUED" and job.wait_message:
            self._once(("waits", job.wait_message), f"Waits: {job.wait_message}")
        for attempt in sorted(attempts, key=lambda each: each.number):
            if attempt.number > 1:
                self._once(("attempt", attempt.number), f"Attempt {attempt.number}")
            for stage in attempt.stages:
                self._stage(attempt.number, stage)

    def ended(self, job: Job) -> None:
        """How it ended, why, and what to do about it."""
        span = ""
        if job.started_at and job.ended_at:
            span = f" after {duration(job.ended_at - job.started_at)}"
        code = f", exit code {job.exit_code}" if job.exit_code else ""
        word = click.style(job.status_label, fg=STATUS_COLOURS.get(job.status), bold=True)
        _tell(f"Job {job.id}: {word}{span}{code}")
        if job.status != "SUCCEEDED":
            for sentence in filter(None, (job.message, job.hint)):
                _tell(f"  {sentence}")

    def disconnected(self, reason: str) -> None:
        """The portal is away."""
        _tell(click.style(f"Connection lost ({reason}); trying again ...", dim=True))

    def connected_again(self) -> None:
        """The portal is back."""
        _tell(click.style("Connected again.", dim=True))

    def goes_on(self, job: Job) -> None:
        """The waiting is over, the job is not."""
        _tell(f"Job {job.id}: {job.status_label}, not waited for any longer")

    def detached(self, job: Job) -> None:
        """The reader left; the job did not."""
        _tell(f"\nDetached: job {job.id} goes on. Follow it again: mportal logs -f {job.id}")

    def _stage(self, attempt: int, stage: Stage) -> None:
        if stage.state not in _MARKS:
            return
        took = "" if stage.duration_s is None else duration(stage.duration_s)
        said = stage.failure or ("" if stage.state == "active" else stage.detail)
        text = f"{_mark(stage.state)} {stage.label:<16}{took:>8}  {said}".rstrip()
        self._once((attempt, stage.name, stage.state), text)

    def _once(self, key: tuple[object, ...], text: str) -> None:
        if key not in self._shown:
            self._shown.add(key)
            _tell(text)


def _mark(state: str) -> str:
    encoding = (getattr(sys.stderr, "encoding", None) or "ascii").lower()
    return (_MARKS if encoding.startswith("utf") else _ASCII_MARKS)[state]


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _source(line: LogLine) -> tuple[int, int, str]:
    return line.attempt, line.rank, line.stream
