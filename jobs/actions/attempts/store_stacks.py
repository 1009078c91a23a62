"""The store of runners' reports about stacks that were requested; their texts are masked already.

Called inside the transaction of `ingest_frames`, under the lock of the attempt's log.
"""

from __future__ import annotations

from typing import Any

from jobs.ground import clock
from jobs.logs.frames import Frame
from jobs.logs.lines import storable
from jobs.models import Attempt, StackDump
from jobs.statuses import StackState
from monarch_client.runner.vocabulary.limits import (
    MAX_DUMP_CHARS,
    MAX_DUMP_COMMAND_CHARS,
    MAX_DUMP_PROCESSES,
)

_WHY_CHARS = 2000
_MOST_LEFT_OUT = 1_000_000
_OVER = "The attempt ended before the node had answered."


def store_stacks(attempt: Attempt, reports: list[Frame]) -> None:
    """Store the reports of open requests; all others are ignored."""
    for number in dict.fromkeys(report["ask"] for report in reports):
        open_dumps = StackDump.objects.open().select_for_update(no_key=True)
        dump = open_dumps.filter(pk=number, attempt=attempt).first()
        if dump is None:
            continue
        # A rank speaks for itself alone.
        answers = [r for r in reports if r["ask"] == number and r["rank"] == dump.rank]
        if answers:
            _store(dump, answers)


def end_stacks(attempt: Attempt) -> None:
    """Fail the open requests of an attempt that has ended."""
    StackDump.objects.open().filter(attempt=attempt).update(
        state=StackState.FAILED, ended_at=clock.now(), why=_OVER
    )


def _store(dump: StackDump, answers: list[Frame]) -> None:
    room = MAX_DUMP_CHARS - sum(len(each["text"]) for each in dump.processes)
    for report in answers:
        if report.get("done"):
            _end(dump, report, storable(report.get("why") or "", _WHY_CHARS))
            break
        process: dict[str, Any] = {
            "pid": report.get("pid"),
            "command": storable(report.get("command") or "", MAX_DUMP_COMMAND_CHARS),
            "text": storable(report.get("text") or "", MAX_DUMP_CHARS),
            "why": storable(report.get("why") or "", _WHY_CHARS),
        }
        room -= len(process["text"])
        if room < 0 or len(dump.processes) == MAX_DUMP_PROCESSES:
            dump.left_out += 1
        else:
            dump.processes.append(process)
    dump.save(update_fields=["state", "ended_at", "why", "processes", "left_out"])


def _end(dump: StackDump, report: Frame, why: str) -> None:
    has_text = any(process["text"] for process in dump.processes)
    dump.state = StackState.DONE if has_text else StackState.FAILED
    reasons = (process["why"] for process in dump.processes if process["why"])
    dump.why = why or ("" if has_text else next(reasons, "The node found nothing to report."))
    dump.left_out = min(dump.left_out + (report.get("left_out") or 0), _MOST_LEFT_OUT)
    dump.ended_at = clock.now()
