"""Lines of a job's log that match a question, over all of its attempts, by cursor."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.logs.cursor import START, Cursor
from jobs.logs.match_pool import POOL
from jobs.logs.matching import Question
from jobs.logs.searching import Budget, FoundLine, search_after
from jobs.readers.extended import extended
from jobs.readers.job_log import LogChoice, line_of_job
from monarch_client.wire.logs import LogHit


@dataclass(frozen=True, slots=True)
class JobLogHits:
    """Hits in order, all there are up to `last`. `is_cut`: lines behind it were not looked at."""

    hits: list[LogHit]
    last: Cursor
    is_cut: bool
    scanned_bytes: int


def search_log(
    job_id: int,
    question: Question,
    *,
    after: Cursor = START,
    limit: int = 1000,
    attempt: int | None = None,
) -> JobLogHits:
    """Return the first hits after `after`, as far as one request goes.

    InvalidPatternError, SearchTooSlowError: the pattern is to blame. PortalBusyError: try again.
    """
    hits: list[LogHit] = []
    last, is_cut = after, False
    with POOL.lend(question) as process:
        budget = Budget(limit)
        for number, attempt_id in LogChoice(attempt).attempts(job_id):
            if number < after.attempt:
                continue
            if budget.is_spent and budget.bytes:
                is_cut = True
                break
            line = after.line if number == after.attempt else 0
            stretch = search_after(process, attempt_id, line, budget)
            hits += [_of(number, each) for each in stretch.found]
            last, is_cut = Cursor(number, stretch.last), stretch.is_cut
            if is_cut:
                break
    return JobLogHits(hits, last, is_cut, budget.bytes)


def _of(number: int, found: FoundLine) -> LogHit:
    spans = [list(span) for span in found.spans]
    return extended(LogHit, line_of_job(number, found.line), spans=spans)
