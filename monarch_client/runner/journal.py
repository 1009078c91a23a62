"""Frames on disk until somebody has acknowledged them. It knows numbers, not meanings.

A journal is a folder of segments, each a file of NDJSON lines, in order of arrival. The process may
die at any moment: what was appended is read again, a torn last line is dropped.
"""

from __future__ import annotations

import json
import os
import threading
from typing import IO, TYPE_CHECKING

from monarch_client.runner.frames import number_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable, Iterator

SEGMENT_BYTES = 8 * 1024 * 1024
_POSITION_FILE = "acknowledged"
_SUFFIX = ".ndjson"
_FULL_DISK_RETRY_S = 1.0


class Journal:
    """Many writers, one reader. `highest` is the last number of each rank, acknowledged or not."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._changed = threading.Condition()
        folder.mkdir(parents=True, exist_ok=True)
        self._segment, self._offset, self.highest = _read_position(folder)
        if not self._path(self._segment).exists():
            self._segment, self._offset = min(_segment_numbers(folder), default=self._segment), 0
        self._finished = False
        self.on_append: Callable[[], None] = lambda: None
        for segment in self._segments():
            self._replay(segment)
        self._write_segment = max([*self._segments(), self._segment])
        self._fd = self._open_segment(self._write_segment)
        self._size = os.fstat(self._fd).st_size

    def append(self, rank: int, last: int, lines: list[bytes], *, sync: bool = False) -> None:
        """Add `lines`, whose last one has number `last`. A full disk makes it wait for room."""
        data = b"".join(lines)
        with self._changed:
            if self._size and self._size + len(data) > self._segment_bytes:
                self._start_segment()
            while not self._write(data):
                self._changed.wait(_FULL_DISK_RETRY_S)
            if sync:
                os.fsync(self._fd)
            self._size += len(data)
            self.highest[rank] = last
            self._changed.notify_all()
        self.on_append()

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to read; False if there was nothing in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._finished or not self.is_read, seconds)

    def finish(self) -> None:
        """Nothing more will be written: the reader need not wait any longer."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    @property
    def is_read(self) -> bool:
        """Whether everything written has been acknowledged."""
        return (self._segment, self._offset) == (self._write_segment, self._size)

    def peek(self, max_bytes: int) -> list[bytes]:
        """The oldest lines not acknowledged: at least one if there is any, else up to the limit."""
        with self._changed:
            end = self._size if self._segment == self._write_segment else None
        with self._path(self._segment).open("rb") as file:
            file.seek(self._offset)
            budget = -1 if end is None else end - self._offset
            lines = list(_whole_lines(file, budget, max_bytes))
        if not lines and end is None:
            self._next_segment()
            return self.peek(max_bytes)
        return lines

    def acknowledge(self, lines: list[bytes]) -> None:
        """Forget the first lines of the last `peek`; whole segments are deleted.

        On a full disk this process alone knows; a later one would deliver them once more.
        """
        self._offset += sum(len(line) for line in lines)
        self._note_position()

    def _next_segment(self) -> None:
        done, self._segment, self._offset = self._segment, self._segment + 1, 0
        is_noted = self._note_position()
        self._path(done).unlink()
        if not is_noted:
            # The disk was full; it is no longer.
            self._note_position()

    def _note_position(self) -> bool:
        try:
            _write_position(self._folder, self._segment, self._offset, self.highest)
        except OSError:
            return False
        return True

    def _start_segment(self) -> None:
        try:
            fd = self._open_segment(self._write_segment + 1)
        except OSError:
            return  # a full disk: the present one grows beyond its size
        os.close(self._fd)
        self._fd, self._size = fd, 0
        self._write_segment += 1

    def _open_segment(self, segment: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._path(segment), flags, 0o600)

    def _write(self, data: bytes) -> bool:
        """Write all of it, or nothing and return False."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            os.ftruncate(self._fd, self._size)
            return False
        return True

    def _replay(self, segment: int) -> None:
        path = self._path(segment)
        kept = 0
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                kept += len(line)
                rank, seq = number_of(line)
                self.highest[rank] = max(seq, self.highest.get(rank, 0))
        if kept < path.stat().st_size:
            os.truncate(path, kept)

    def _segments(self) -> list[int]:
        return [number for number in _segment_numbers(self._folder) if number >= self._segment]

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:08d}{_SUFFIX}"


def read_leftovers(folder: Path) -> Iterator[bytes]:
    """The lines nobody has acknowledged in the journal of a runner that is gone."""
    segment, offset, _ = _read_position(folder)
    for number in _segment_numbers(folder):
        if number < segment:
            continue
        with (folder / f"{number:08d}{_SUFFIX}").open("rb") as file:
            file.seek(offset if number == segment else 0)
            for line in file:
                if line.endswith(b"\n"):
                    yield line


def _segment_numbers(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*" + _SUFFIX))


def _whole_lines(file: IO[bytes], budget: int, max_bytes: int) -> Iterator[bytes]:
    """Lines from `file`, at most `budget` bytes (-1: all), at least one, else up to `max_bytes`."""
    taken = 0
    for line in file:
        if budget >= 0 and taken + len(line) > budget:
            return
        if taken and taken + len(line) > max_bytes:
            return
        taken += len(line)
        yield line


def _read_position(folder: Path) -> tuple[int, int, dict[int, int]]:
    try:
        position = json.loads((folder / _POSITION_FILE).read_text())
    except (OSError, ValueError):
        return 1, 0, {}
    highest = {int(rank): int(seq) for rank, seq in position["highest"].items()}
    return int(position["segment"]), int(position["offset"]), highest


def _write_position(folder: Path, segment: int, offset: int, highest: dict[int, int]) -> None:
    path = folder / _POSITION_FILE
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"segment": segment, "offset": offset, "highest": dict(highest)}))
    new.replace(path)
