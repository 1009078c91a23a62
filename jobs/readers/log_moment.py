"""The line of a job's log at a moment."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.logs.cursor import Cursor
from jobs.logs.reading import Wanted, read_after
from jobs.models import LogHead
from jobs.permissions import Actor, job_for
from jobs.readers.job_log import LogChoice


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in milliseconds since 1970, of one attempt (by number) or any, and one rank."""

    at_ms: int
    attempt: int | None = None
    rank: int | None = None


def line_at(actor: Actor, slug: str, job_id: int, moment: Moment) -> Cursor | None:
    """Return the first line at or after a moment, of the newest attempt that began before it.

    The last line, if there is none after it; None without lines. NotFoundError as for `job_for`.
    """
    job = job_for(actor, slug, job_id)
    found = None
    for number, attempt_id in reversed(LogChoice(moment.attempt).attempts(job.pk)):
        first = read_after(attempt_id, 0, 1).lines
        if not first:
            continue
        line = _first_at(attempt_id, moment.at_ms)
        wanted = read_after(attempt_id, line - 1, 1, Wanted(moment.rank)).lines
        found = Cursor(number, wanted[0].number if wanted else line)
        if first[0].at_ms <= moment.at_ms:
            break
    return found


def _first_at(attempt_id: int, at_ms: int) -> int:
    """Return the first line of an attempt at or after a moment, else its last.

    Lines are in the order in which they arrived, which is nearly that of their times.
    """
    ends = LogHead.objects.filter(pk=attempt_id).values_list("next_line", flat=True)
    low, high = 1, max(1, ends.get() - 1)
    while low < high:
        middle = (low + high) // 2
        found = read_after(attempt_id, middle - 1, 1).lines
        if found and found[0].at_ms < at_ms:
            low = middle + 1
        else:
            high = middle
    return low
