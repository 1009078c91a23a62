"""Dump the stacks of the job's Python processes on request.

One thread handles one request after the other. It reads only processes of the job, and no error
here affects the job.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.process_tree import descendants, descends_from, started_at
from monarch_client.runner.probes import py_spy
from monarch_client.runner.vocabulary.frames import STACKS
from monarch_client.runner.vocabulary.limits import (
    MAX_DUMP_CHARS,
    MAX_DUMP_COMMAND_CHARS,
    MAX_DUMP_PROCESSES,
)

if TYPE_CHECKING:
    from typing import Callable, Collection, Iterable

    from monarch_client.runner.place import Place
    from monarch_client.runner.vocabulary.stack_requests import StackRequest

# Characters of the text of one process.
_MOST_OF_ONE = 60_000
# The portal waits no longer than two minutes.
_MOST_S = 60.0
_CUT = "\n[cut here: it is longer than can be kept]"


class Target(NamedTuple):
    """A Python process; `started` distinguishes it from a later one with the same id."""

    pid: int
    started: int
    command: str


class StackDumps:
    """A queue of requests; `request` and `stop` are for the main loop's thread."""

    def __init__(self, place: Place) -> None:
        # Processes that are none of the job's.
        self.leave_out: Callable[[], Collection[int | None]] = tuple
        self._place = place
        self._known: set[int] = set()
        self._waiting: queue.SimpleQueue[StackRequest] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def request(self, requests: Iterable[StackRequest]) -> None:
        """Queue the requests; one that is repeated is answered once."""
        for each in requests:
            if each.id not in self._known:
                self._known.add(each.id)
                self._waiting.put(each)
        if self._known and self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True, name="stacks")
            self._thread.start()

    def stop(self) -> None:
        """Answer no further request: the last frame has been recorded."""
        self._stopping.set()

    def _work(self) -> None:
        while not self._stopping.is_set():
            request = self._waiting.get()
            try:
                self._answer(request)
            except Exception as error:  # noqa: BLE001 - whatever /proc or py-spy gives
                # A journal on a full disk must not end the thread.
                with contextlib.suppress(OSError):
                    self._end(request, f"The runner could not dump the stacks: {error!r}"[:500])

    def _answer(self, request: StackRequest) -> None:
        left_out = self.leave_out()
        targets = [target for target in python_processes() if target.pid not in left_out]
        if request.pid is not None:
            targets = [target for target in targets if target.pid == request.pid]
        program = py_spy.find(self._place, targets[0].pid) if targets else None
        if not targets:
            self._end(request, _no_target(request))
        elif program is None:
            self._end(request, py_spy.MISSING)
        else:
            self._end(request, left_out=self._dump_all(request, targets, program))

    def _dump_all(self, request: StackRequest, targets: list[Target], program: str) -> int:
        """Record the dump of each target; return how many are left out."""
        give_up_at = time.monotonic() + _MOST_S
        room = MAX_DUMP_CHARS
        for done, target in enumerate(targets):
            is_over = self._stopping.is_set() or time.monotonic() > give_up_at
            if is_over or room <= 0 or done == MAX_DUMP_PROCESSES:
                return len(targets) - done
            look = _look_at(target, program)
            text = _cut(look.text, min(room, _MOST_OF_ONE))
            room -= len(text)
            self._record(request, pid=target.pid, command=target.command, text=text, why=look.why)
        return 0

    def _end(self, request: StackRequest, why: str = "", *, left_out: int = 0) -> None:
        self._record(request, why=why, left_out=left_out, done=True)

    def _record(self, request: StackRequest, **fields: object) -> None:
        if not self._stopping.is_set():
            self._place.recorder.write(STACKS, ask=request.id, **fields)


def python_processes() -> list[Target]:
    """Return the job's Python processes, the descendants of this one, in the order of their ids."""
    found = []
    for pid in sorted(descendants(os.getpid())):
        started = started_at(pid)
        if started is not None and _runs_python(pid):
            found.append(Target(pid, started, _command_of(pid)))
    return found


def _look_at(target: Target, program: str) -> py_spy.Look:
    """Dump a process, and check before and after that its id still names the same process."""
    if not _is_still_there(target):
        return py_spy.Look("", "It has ended.")
    look = py_spy.look_at(program, target.pid)
    return look if _is_still_there(target) else py_spy.Look("", "It has ended meanwhile.")


def _is_still_there(target: Target) -> bool:
    return started_at(target.pid) == target.started and descends_from(target.pid, os.getpid())


def _runs_python(pid: int) -> bool:
    folder = Path("/proc", str(pid))
    try:
        program = os.readlink(str(folder / "exe"))
    except OSError:
        program = _command_of(pid).split(" ", 1)[0]
    if Path(program).name.startswith("python"):
        return True
    try:
        # A program with Python inside, such as one that was frozen.
        return "/libpython" in (folder / "maps").read_text(errors="replace")
    except OSError:
        return False


def _command_of(pid: int) -> str:
    try:
        words = Path("/proc", str(pid), "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace")[:MAX_DUMP_COMMAND_CHARS]


def _no_target(request: StackRequest) -> str:
    if request.pid is None:
        return f"No Python process of this job runs on rank {request.rank}."
    return f"Process {request.pid} is no Python process of this job on rank {request.rank}."


def _cut(text: str, most: int) -> str:
    """Return at most `most` characters of a text, in whole lines."""
    if len(text) <= most:
        return text
    return text[: max(0, most - len(_CUT))].rpartition("\n")[0] + _CUT
