"""The last lines of an attempt's log: the ranks whose end is unknown, and where their logs stop."""

from __future__ import annotations

from jobs.ground import clock
from jobs.live.channel import publish_log_on_commit
from jobs.logs.lines import encoded
from jobs.logs.write import append
from jobs.models import Attempt, LogHead, Worker
from jobs.statuses import WorkerStatus


def report_lost_lines(
    attempt: Attempt, *, all_silent: bool, reported_by: int | None = None
) -> None:
    """Say for each lost rank after which of its messages some may be missing.

    `all_silent`: every rank that did not report its end is lost, not only one that was given up.
    `reported_by`: the rank that reported the attempt's end. It lost what came before, if any.
    Within the transaction that ends the attempt, before its workers are ended. Locks the log.
    Without any acknowledged frame, there is nothing to report.
    """
    head = LogHead.objects.select_for_update(no_key=True).filter(pk=attempt.pk).first()
    if head is None or not head.acked:
        return
    lines = [
        _line(attempt, rank, None if rank == reported_by else head.acked.get(str(rank), 0))
        for rank in _lost(attempt, all_silent=all_silent)
    ]
    if lines:
        append(head, lines)
        publish_log_on_commit(head.pk, head.next_line)


def _lost(attempt: Attempt, *, all_silent: bool) -> list[int]:
    workers = Worker.objects.filter(attempt=attempt)
    statuses = dict(workers.values_list("rank", "status"))
    if not all_silent:
        return sorted(rank for rank, status in statuses.items() if status == WorkerStatus.LOST)
    ranks = range(attempt.job.num_hosts)
    return [rank for rank in ranks if statuses.get(rank) != WorkerStatus.EXITED]


def _line(attempt: Attempt, rank: int, number: int | None) -> str:
    missing = "its last lines" if number is None else f"messages after its number {number}"
    text = (
        f"[portal] The end of rank {rank} in attempt {attempt.number} was not heard: "
        f"{missing} may be missing."
    )
    return encoded(rank, "portal", int(clock.now().timestamp() * 1000), text)
