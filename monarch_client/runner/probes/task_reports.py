"""Reports of task contexts on this node: their summaries are files, which a thread reads and sends.

No error here affects the job.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.vocabulary.carriers import NONE
from monarch_client.runner.vocabulary.frames import TASKS, state_line

if TYPE_CHECKING:
    from typing import Any, Callable

    from monarch_client.runner.place import Place

    Summary = dict[str, Any]

PACE_S = 1.0
# Of many nodes each reports less often: the portal stores fifty reports a second.
_PACE_PER_NODE_S = 0.02
# Unchanged reports are sent again, as a sign of life.
REPORT_AGAIN_S = 15.0
# Contexts of one node that are reported: the latest ones.
MOST_CONTEXTS = 16
_LARGEST_FILE = 1 << 20
# The last reports of a node wait for no longer: a job must end.
LAST_LOOK_S = 5.0
# A program may put a link or a fifo there, whose reading may never end.
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Samples of hosts are in the same posts.
MOST_BYTES = 96 * 1024
_LISTS = ("tasks", "actors", "hosts", "failures")
# How many rows of each list a report may have: fewer, until it fits.
_MOST_ROWS = (50, 20, 8, 3, 0)


class _Known(NamedTuple):
    changed_ns: int
    summary: Summary


class TaskReports:
    """The reports of this node's task contexts, from `start` to `stop`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = place.folder.tasks
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._seen: set[str] = set()
        self._reported_at = 0.0

    def start(self) -> None:
        """Start the thread."""
        if self._place.config.carrier != NONE:
            threading.Thread(target=self._watch, daemon=True, name="task-reports").start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()

    def look(self) -> None:
        """Report what has changed. Safe in any thread."""
        with self._lock:
            try:
                self._look()
            except Exception:  # noqa: BLE001 - a program has written something else there
                self._known.clear()

    def look_last(self) -> None:
        """Report what has changed before a node or the attempt ends, within a bounded time."""
        thread = threading.Thread(target=self.look, daemon=True, name="last-task-reports")
        with contextlib.suppress(RuntimeError):  # no further thread can start
            thread.start()
            thread.join(LAST_LOOK_S)

    def _watch(self) -> None:
        pace_s = max(PACE_S, len(self._place.config.nodes) * _PACE_PER_NODE_S)
        while not self._stopping.wait(pace_s):
            self.look()

    def _look(self) -> None:
        if not self._folder.exists():
            return
        changed = self._read()
        now = time.monotonic()
        if self._known and (changed or now - self._reported_at >= REPORT_AGAIN_S):
            self._reported_at = now
            rank = self._place.rank
            newest = [each.summary for each in reversed(self._known.values())]
            line = fitting(
                newest, len(self._seen), lambda content: state_line(rank, TASKS, content)
            )
            self._place.samples.put(rank, line, TASKS)

    def _read(self) -> bool:
        """Read the files that have changed. Whether one has."""
        files = [each for each in self._folder.iterdir() if each.suffix == ".json"]
        found = [(each.lstat(), each) for each in files]
        stats = [(info, each) for info, each in found if stat.S_ISREG(info.st_mode)]
        stats.sort(key=lambda each: each[0].st_mtime_ns)
        # A job may make a context for each of many steps.
        for _, file in stats[:-MOST_CONTEXTS]:
            with contextlib.suppress(OSError):
                file.unlink()
        latest = stats[-MOST_CONTEXTS:]
        self._seen.update(file.name for _, file in stats)
        known = {file.name: self._summary_of(file, info) for info, file in latest}
        before, self._known = (
            self._known,
            {name: each for name, each in known.items() if each is not None},
        )
        return self._known != before

    def _summary_of(self, file: Any, info: os.stat_result) -> _Known | None:
        before = self._known.get(file.name)
        if before is not None and before.changed_ns == info.st_mtime_ns:
            return before
        try:
            text = _text_of(str(file))
            if len(text) > _LARGEST_FILE:
                return None
            summary = json.loads(text.decode("utf-8"))
            # The portal refuses NaN and Infinity, also those that were a number such as 1e999.
            json.dumps(summary, allow_nan=False)
        except (OSError, ValueError, RecursionError):
            return before
        if not isinstance(summary, dict):
            return None
        return _Known(info.st_mtime_ns, {**summary, **_counted_lists(summary), "name": file.stem})


def _text_of(path: str) -> bytes:
    """Return the text of a regular file, at most one byte more than a summary may have."""
    descriptor = os.open(path, _OPEN_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        return file.read(_LARGEST_FILE + 1)


def fitting(newest: list[Summary], seen: int, encode: Callable[[Any], bytes]) -> bytes:
    """Return a report of contexts, the newest first: with fewer rows, until it fits a frame."""
    line = _encoded(newest, seen, encode)
    for most in _MOST_ROWS:
        if len(line) <= MOST_BYTES:
            return line
        newest = [_shorter(each, most) for each in newest]
        line = _encoded(newest, seen, encode)
    while len(line) > MOST_BYTES and newest:
        newest = newest[: len(newest) // 2]
        line = _encoded(newest, seen, encode)
    return line


def _encoded(newest: list[Summary], seen: int, encode: Callable[[Any], bytes]) -> bytes:
    return encode({"contexts": newest, "left_out": seen - len(newest)})


def _counted_lists(summary: Summary) -> Summary:
    """Return the lists of a summary with the counts of what is left out: 0 if it lacks them."""
    found: Summary = {}
    for name in _LISTS:
        rows, left_out = summary.get(name), summary.get(f"{name}_left_out")
        found[name] = rows if isinstance(rows, list) else []
        found[f"{name}_left_out"] = left_out if isinstance(left_out, int) else 0
    return found


def _shorter(summary: Summary, most: int) -> Summary:
    shorter = dict(summary)
    for name in _LISTS:
        rows = summary[name]
        shorter[name] = rows[:most]
        shorter[f"{name}_left_out"] = summary[f"{name}_left_out"] + len(rows) - len(shorter[name])
    return shorter
