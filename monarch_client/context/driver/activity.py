"""Counts of a context's calls by name, and its latest failures: bounded, however many there are."""

from __future__ import annotations

from collections import Counter, deque
from datetime import datetime, timezone
from typing import NamedTuple

from monarch_client.context.values import ERROR, Payload, error_texts
from monarch_client.wire.tasks import TaskCount, TaskFailure

# Tasks of more names are counted by their functions, then together.
MOST_NAMES, MOST_FUNCTIONS = 100, 100
OTHERS = ""
MOST_NAME_CHARS = 100
MOST_FAILURES = 10
_MOST_ERROR_CHARS, _MOST_TRACE_CHARS = 300, 2500
# An error may contain any values: of a larger one the texts alone are kept.
_LARGEST_KEPT = 1 << 16


class Tally:
    """The calls of one name. `function`: of tasks with names of their own."""

    __slots__ = ("cancelled", "failed", "finished", "function", "ran", "ran_ns", "submitted")

    def __init__(self, function: str = "") -> None:
        self.function = function
        self.submitted = self.finished = self.failed = self.cancelled = 0
        # Those that a process has run to their end, and their time.
        self.ran = self.ran_ns = 0


class _Failure(NamedTuple):
    name: str
    host: str
    at: datetime
    error: Payload | tuple[str, str]


class Activity:
    """The counts and failures of one context."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._failures: deque[_Failure] = deque(maxlen=MOST_FAILURES)
        self._failed = 0

    def submitted(self, name: str, function: str = "") -> None:
        """Count a call. `function`: of a task with a name of its own."""
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tally(name, function)
        tally.submitted += 1

    def ran(self, name: str, payload: Payload, ran_ns: int, host: str, function: str = "") -> None:
        """Count a call that a process has run to its end."""
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tally(name, function)
        tally.ran += 1
        tally.ran_ns += ran_ns
        if payload.kind == ERROR:
            tally.failed += 1
            self.note_failure(name, payload, host)
        else:
            tally.finished += 1

    def failed(self, name: str, payload: Payload, host: str = "", function: str = "") -> None:
        """Count a call that ended without a result. `host`: where its process was lost."""
        self._tally(name, function).failed += 1
        if host:
            self.note_failure(name, payload, host)

    def cancelled(self, name: str, function: str = "") -> None:
        """Count a call that was cancelled."""
        self._tally(name, function).cancelled += 1

    def note_failure(self, name: str, payload: Payload, host: str) -> None:
        """Keep the error of a call, with the host where it ran."""
        self._failed += 1
        error = payload if len(payload.data) <= _LARGEST_KEPT else _texts(payload)
        self._failures.append(_Failure(name, host, datetime.now(timezone.utc), error))

    def counted_as(self, name: str, function: str = "") -> str:
        """Return the name under which a call is counted: of too many names, its function's."""
        if name in self._tallies or len(self._tallies) < MOST_NAMES:
            return name
        has_room = len(self._tallies) < MOST_NAMES + MOST_FUNCTIONS
        return function if function and (function in self._tallies or has_room) else OTHERS

    def rows(self, running: Counter[str]) -> list[TaskCount]:
        """Return the counts of each name; `running` are the calls that run now, as counted."""
        listed: Counter[str] = Counter()
        for name, count in running.items():
            listed[name if name in self._tallies else OTHERS] += count
        return [_row(name, each, listed[name]) for name, each in self._tallies.items()]

    def failures(self) -> tuple[list[TaskFailure], int]:
        """Return the latest failures, the newest first, and how many others there were."""
        rows = [_failure_row(each) for each in reversed(self._failures)]
        return rows, self._failed - len(rows)

    def _tally(self, name: str, function: str) -> Tally:
        known = self._tallies.get(name)
        if known is not None:
            return known
        key = self.counted_as(name, function)
        return self._tallies.setdefault(key, Tally(function if key else ""))


def shown(text: str, limit: int = MOST_NAME_CHARS) -> str:
    """Return the beginning of a text, without what no encoding has."""
    return text[:limit].encode("utf-8", "replace").decode()


def _row(name: str, tally: Tally, running: int) -> TaskCount:
    ended = tally.finished + tally.failed + tally.cancelled
    return TaskCount(
        name=shown(name),
        function=shown(tally.function),
        pending=max(0, tally.submitted - ended - running),
        running=running,
        finished=tally.finished,
        failed=tally.failed,
        cancelled=tally.cancelled,
        mean_seconds=round(tally.ran_ns / 1e9 / tally.ran, 6) if tally.ran else None,
    )


def _failure_row(failure: _Failure) -> TaskFailure:
    kept = failure.error
    error, trace = _texts(kept) if isinstance(kept, Payload) else kept
    name, host = shown(failure.name), shown(failure.host)
    return TaskFailure(name=name, host=host, at=failure.at, error=error, trace=trace)


def _texts(payload: Payload) -> tuple[str, str]:
    """Return the error and the end of its traceback, which says what was raised."""
    error, trace = error_texts(payload)
    return shown(error, _MOST_ERROR_CHARS), shown(trace[-_MOST_TRACE_CHARS:], _MOST_TRACE_CHARS)
