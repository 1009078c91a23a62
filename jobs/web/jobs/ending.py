"""The explanation of a job's end: each fact once, and what is long folded."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.statuses import EVIDENCE
from monarch_client.runner.scripts.mportal_runtime.tracebacks import Raised, exception_that_ended
from monarch_client.wire.attempts import Attempt
from monarch_client.wire.jobs import Event, Job

MOST_EVIDENCE_LINES, EVIDENCE_END_LINES, MOST_FRAMES = 12, 4, 3
# Long messages of exceptions are shortened in a verdict.
_COMPARED_CHARS = 100
# Hints that send the reader to what the page shows.
_POINTERS = ("See the ", "An actor or a proc failed; see")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The output that a runner kept to show why an attempt failed.

    `message` is the text above it, `line` the number of the log's line that shows it best.
    """

    text: str = ""
    message: str = ""
    line: int | None = None
    is_diagnosed: bool = False

    @property
    def lines(self) -> list[str]:
        """Line by line."""
        return self.text.rstrip("\n").split("\n")

    @property
    def raised(self) -> Raised | None:
        """The exception that it shows."""
        return exception_that_ended(self.text)

    @property
    def is_long(self) -> bool:
        """Whether it would push everything else off the page."""
        return len(self.lines) > MOST_EVIDENCE_LINES

    @property
    def is_named(self) -> bool:
        """Whether the message names its exception, so that the rest may be folded."""
        raised = self.raised
        return raised is not None and raised.error.rstrip(".:")[:_COMPARED_CHARS] in self.message

    @property
    def is_folded(self) -> bool:
        """Whether nothing of it is shown at first, because the panel explains the end."""
        return self.is_named or self.is_diagnosed

    @property
    def adds_something(self) -> bool:
        """Whether it holds a line that the message does not contain."""
        return any(line.strip() not in self.message for line in self.lines)

    @property
    def end(self) -> str:
        """The last lines; of a traceback the head, the last frame and the error itself."""
        raised = self.raised
        if raised is None:
            return "\n".join(self.lines[-EVIDENCE_END_LINES:])
        shown = [line for line in self.lines[raised.first_line :] if line.strip(" ^~")]
        frames = [n for n, line in enumerate(shown) if line.lstrip().startswith('File "')]
        if len(frames) > MOST_FRAMES:
            shown = [shown[0], "  ...", *shown[frames[-1] :][:MOST_EVIDENCE_LINES]]
        return "\n".join(shown)


def evidence_of(job: Job, attempt: Attempt | None, events: list[Event]) -> Evidence:
    """Return the output that shows why the attempt failed: the last lines of an error, mostly."""
    number = attempt.number if attempt else None
    found = (event for event in events if event.verb == EVIDENCE and event.attempt == number)
    event = next(found, None)
    if event is None:
        return Evidence()
    diagnosis = attempt.diagnosis if attempt else None
    said = f"{job.message}\n{diagnosis.evidence}" if diagnosis else job.message
    return Evidence(event.message, said, event.line, is_diagnosed=diagnosis is not None)


def diagnosis_line(job: Job, attempt: Attempt | None) -> str:
    """Return the line that shows a diagnosis; empty if the message has it."""
    if attempt is None or attempt.diagnosis is None:
        return ""
    line = attempt.diagnosis.evidence
    return "" if line in job.message else line


def hint_of(job: Job, attempt: Attempt | None, evidence: Evidence) -> str:
    """Return a job's hint; empty if it sends the reader to what the page shows."""
    is_shown = bool(evidence.text or (attempt and attempt.diagnosis))
    return "" if is_shown and job.hint.startswith(_POINTERS) else job.hint
