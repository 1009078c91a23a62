"""The progress of a job on standard error: stages, attempts, the result and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from monarch_client.cli.output import duration, local_day
from monarch_client.cli.tables import STATUS_COLORS
from monarch_client.cli.terminal import one_line, tell

if TYPE_CHECKING:
    from monarch_client.wire.attempts import Attempt, Stage
    from monarch_client.wire.jobs import Job

_MARKS = {"active": "▸", "done": "✓", "failed": "✗", "stopped": "■"}
_ASCII_MARKS = {"active": ">", "done": "+", "failed": "x", "stopped": "-"}


@dataclass
class Progress:
    """A printer of a job's changes, each once."""

    _shown: set[tuple[object, ...]] = field(default_factory=set)

    def submitted(self, job: Job) -> None:
        """Print the address of the new job."""
        tell(f"Job {job.id} ({job.name}): {job.url}")

    def show(self, job: Job, attempts: Iterable[Attempt]) -> None:
        """Print what is new since the last call."""
        if job.status == "QUEUED" and job.wait_message:
            self._once(("waits", job.wait_message), f"Waits: {one_line(job.wait_message)}")
        in_order = sorted(attempts, key=lambda each: each.number)
        for attempt in in_order:
            if attempt.number > 1:
                self._once(("attempt", attempt.number), f"Attempt {attempt.number}")
            for stage in attempt.stages:
                self._stage(attempt.number, stage)
            if attempt.log_removed_at:
                day = local_day(attempt.log_removed_at)
                said = f"The log of attempt {attempt.number} was removed on {day}."
                self._once(("removed", attempt.number), said)
            if attempt is not in_order[-1] or job.status == "RECOVERING":
                self._gave_way(attempt)

    def ended(self, job: Job) -> None:
        """Print how it ended, why, and what to do."""
        span = ""
        if job.started_at and job.ended_at:
            span = f" after {duration(job.ended_at - job.started_at)}"
        code = f", exit code {job.exit_code}" if job.exit_code else ""
        word = click.style(job.status_label, fg=STATUS_COLORS.get(job.status), bold=True)
        tell(f"Job {job.id}: {word}{span}{code}")
        if job.status != "SUCCEEDED":
            for sentence in filter(None, (job.message, job.hint)):
                tell(f"  {one_line(sentence)}")

    def disconnected(self, reason: str) -> None:
        """Report that the portal cannot be reached."""
        tell(click.style(f"Connection lost ({reason}); trying again ...", dim=True))

    def connected_again(self) -> None:
        """Report that the portal is back."""
        tell(click.style("Connected again.", dim=True))

    def goes_on(self, job: Job) -> None:
        """Report that the wait timed out while the job continues."""
        tell(f"Job {job.id}: {job.status_label}, not waited for any longer")

    def detached(self, job: Job) -> None:
        """Report that the command detached while the job continues."""
        tell(f"\nDetached: job {job.id} goes on. Follow it again: mportal logs -f {job.id}")

    def _gave_way(self, attempt: Attempt) -> None:
        """Return why an attempt ended that was not the last."""
        why = one_line(attempt.message) or attempt.stop_reason
        # An attempt without capacity has no other end: the waiting job has reported it.
        if ("waits", attempt.message) not in self._shown:
            said = f"Attempt {attempt.number} ended, another follows: {why}"
            self._once(("ended", attempt.number), said)

    def _stage(self, attempt: int, stage: Stage) -> None:
        if stage.state not in _MARKS:
            return
        took = "" if stage.duration_s is None else duration(stage.duration_s)
        # Why it failed is what its attempt, or the job, ended with: said there, once.
        said = one_line(stage.detail) if stage.state == "done" else ""
        text = f"{_mark(stage.state)} {stage.label:<16}{took:>8}  {said}".rstrip()
        self._once((attempt, stage.name, stage.state), text)

    def _once(self, key: tuple[object, ...], text: str) -> None:
        if key not in self._shown:
            self._shown.add(key)
            tell(text)


def _mark(state: str) -> str:
    encoding = (getattr(sys.stderr, "encoding", None) or "ascii").lower()
    return (_MARKS if encoding.startswith("utf") else _ASCII_MARKS)[state]
