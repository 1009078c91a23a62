"""Reads in SkyPilot's log of a job how far its workers are. See `runner.plain_carrier`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from monarch_client.skypilot.job_errors import PythonMismatchError
from monarch_client.skypilot.translate import without_color

KEPT_LINES = 200
# "(head, rank=0, pid=123) " and what SkyPilot has for one node or another.
_PREFIX = re.compile(r"^\((?:setup )?[^()]*pid=\d+[^()]*\) ?")
_READY = re.compile(r"mportal: rank (\d+) is READY at (\S+?):\d+, Python (\d+\.\d+)")
_END = re.compile(r"mportal: the end \((\w+)\): (.*)")
_STAGE = re.compile(r"mportal: (\w+): begins")


@dataclass(frozen=True)
class Worker:
    """A worker that listens."""

    rank: int
    address: str
    python: str


@dataclass(frozen=True)
class Ending:
    """The runner's verdict: the stop reason, and a sentence for people."""

    reason: str
    message: str


def refuse_other_pythons(workers: Iterable[Worker], here: str) -> None:
    """Raise PythonMismatchError if a worker's minor version is not `here`, this program's."""
    others = sorted({worker.python for worker in workers} - {here})
    if others:
        raise PythonMismatchError(here, others)


class JobLog:
    """The log as read so far. Feed it pieces; lines may be torn between them."""

    def __init__(self) -> None:
        self.workers: dict[int, Worker] = {}
        self.ending: Ending | None = None
        self.stage = ""
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._rest = ""

    def feed(self, piece: str) -> None:
        """Take what has come."""
        *lines, self._rest = (self._rest + piece).split("\n")
        for line in lines:
            self._take(_PREFIX.sub("", without_color(line)))

    def _take(self, line: str) -> None:
        if line:
            self.lines.append(line)
        if match := _READY.search(line):
            rank = int(match[1])
            self.workers[rank] = Worker(rank, match[2], match[3])
        elif match := _END.search(line):
            self.ending = Ending(match[1], match[2])
        elif match := _STAGE.search(line):
            self.stage = match[1]
