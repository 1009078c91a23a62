"""Find the exceptions in output: in tracebacks of Python, torch and Monarch.

The driver reads Monarch's reports with it, the runner the last lines of a plain job.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Iterator

HEAD = "(most recent call last):"
_FILE_LINE = re.compile(r'\s*File "(.+)", line (\d+)(?:, in .+)?')
_EXCEPTION_LINE = re.compile(r"\s*((?:\w+\.)*[A-Z]\w*(?:: .*|:)?)")
# torch.distributed puts it before each line of a traceback.
_RANK = re.compile(r"\[rank\d+\]: ?")
# Launchers print these because a program that they started has failed.
_OF_LAUNCHERS = ("ChildFailedError", "CalledProcessError")
# What torchrun prints after its empty ChildFailedError.
_ROOT_CAUSE = re.compile(
    r"^Root Cause .*?^ +rank +: (\d+).*?^ +exitcode +: (-?\d+)", re.DOTALL | re.MULTILINE
)
# Files that no user wrote: installed packages, Python's own, and the commands of packages.
_NOT_OF_USERS = re.compile(r"-packages|^<|/lib(?:64)?/(?:python|pypy)\d[\w.]*/|/bin/[^/.]+$")
_OF_OTHERS = ("Exception in thread ", "Exception ignored in")
_CHAINED = ("During handling of the above ", "The above exception was the direct cause ")


class Raised(NamedTuple):
    """An exception of a text: its type and message, the user's file:line, its first line's number.

    The first line is that of the first traceback of a chain. `cause` is what a launcher reports of
    the process that has failed.
    """

    error: str
    place: str
    first_line: int
    cause: str = ""

    @property
    def words(self) -> str:
        """The exception and its place, as a sentence continues after "raised"."""
        error = f"{self.error.rstrip(':')}: {self.cause}" if self.cause else self.error
        return f"{error} at {self.place}" if self.place else error


class _Reader:
    """The state of reading the tracebacks of one program, line by line."""

    def __init__(self) -> None:
        self._previous = ""
        self._last_first_line = 0
        self._is_open = self._is_of_others = False
        self._first_line, self._indent, self._place = 0, 2, ""

    def read(self, number: int, line: str) -> Raised | None:
        """Read a line; return the exception with which it ends a traceback."""
        found = None
        if HEAD in line:
            self._begin(number)
        elif frame := _FILE_LINE.fullmatch(line):
            self._add_frame(number, line, frame)
        elif self._is_open:
            found = self._end(line)
        self._previous = line if line.strip() else self._previous
        return found

    def _begin(self, number: int) -> None:
        is_chained = self._previous.startswith(_CHAINED)
        self._first_line = self._last_first_line if is_chained else number
        self._is_of_others = self._previous.startswith(_OF_OTHERS)
        self._is_open, self._indent, self._place = True, 2, ""

    def _add_frame(self, number: int, line: str, frame: re.Match[str]) -> None:
        if not self._is_open:  # its head was cut off
            self._begin(number)
        self._indent = _indent_of(line)
        self._place = _place_of(frame) or self._place

    def _end(self, line: str) -> Raised | None:
        match = _EXCEPTION_LINE.fullmatch(line)
        # Lines of code are indented deeper than the exception, and so are the files.
        if not match or _indent_of(line) > self._indent - 2:
            return None
        self._is_open = False
        self._last_first_line = self._first_line
        if self._is_of_others:
            return None
        return Raised(match.group(1).rstrip(), self._place, self._first_line)


def exceptions_in(text: str) -> Iterator[Raised]:
    """Yield the exceptions of the tracebacks in `text`, except those of threads."""
    readers: dict[str, _Reader] = {}
    for number, line in enumerate(text.splitlines()):
        rank = _RANK.match(line)
        prefix = rank.group() if rank else ""
        found = readers.setdefault(prefix, _Reader()).read(number, line[len(prefix) :])
        if found is not None:
            yield found


def exception_that_ended(text: str) -> Raised | None:
    """Return the exception that ended a program with this output; None if it shows none."""
    found = list(exceptions_in(text))
    own = [each for each in found if not _is_of_a_launcher(each.error)]
    if own:
        return own[-1]
    return found[-1]._replace(cause=_root_cause_in(text)) if found else None


def _root_cause_in(text: str) -> str:
    """Return what torchrun reports of the process that failed first; empty if it does not."""
    found = _ROOT_CAUSE.search(text)
    if found is None:
        return ""
    rank, code = found.group(1), int(found.group(2))
    try:
        ended = f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        ended = f"returned exit code {code}"
    return f"process rank {rank} {ended}"


def location_in(trace: str) -> str:
    """Return file:line of the last frame of a trace that is in the user's own files."""
    frames = filter(None, map(_FILE_LINE.fullmatch, trace.splitlines()))
    places = [place for place in map(_place_of, frames) if place]
    return places[-1] if places else ""


def _is_of_a_launcher(error: str) -> bool:
    return error.partition(":")[0].rpartition(".")[2] in _OF_LAUNCHERS


def _place_of(frame: re.Match[str]) -> str:
    """Return file:line of a frame in the user's own files; empty elsewhere."""
    path = frame.group(1)
    return "" if _NOT_OF_USERS.search(path) else f"{Path(path).name}:{frame.group(2)}"


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())
