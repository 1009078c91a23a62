"""A store of frames on disk until they are acknowledged. It knows their numbers, not their meaning.

A journal is a folder of segments, each a file of NDJSON lines, in order of arrival. The process may
die at any moment: what was appended is read again, a torn last line is dropped. While the disk is
full, frames are held in memory, so that a writer never waits for space.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from typing import IO, TYPE_CHECKING, NamedTuple

from monarch_client.runner.vocabulary.frames import number_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable, Iterator

SEGMENT_BYTES = 8 * 1024 * 1024
_POSITION_FILE = "acknowledged"
# The reader's position if there are no acknowledgments: read frames are still leftovers.
_KEPT_POSITION_FILE = "printed"
# Of what has been read, in a journal that is kept.
MOST_KEPT_SEGMENTS = 64
_SUFFIX = ".ndjson"
_FULL_DISK_RETRY_S = 1.0
# In memory while the disk is full; frames that must not be lost come on top.
HELD_BYTES = 4 * 1024 * 1024


class Entry(NamedTuple):
    """A group of frames that are written together; `last` is the number of the last one."""

    rank: int
    last: int
    data: bytes
    sync: bool


class Journal:
    """A journal with many writers and one reader. `highest`: each rank's last number on disk."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._changed = threading.Condition()
        folder.mkdir(parents=True, exist_ok=True)
        self._segment, self._offset, self.highest = _read_position(folder)
        if not self._path(self._segment).exists():
            self._segment, self._offset = min(_segment_numbers(folder), default=self._segment), 0
        self._position_file = _POSITION_FILE
        self._finished = False
        self._held: deque[Entry] = deque()
        self._held_bytes = 0
        self._is_retrying = False
        self.on_append: Callable[[], None] = lambda: None
        for segment in self._segments():
            self._replay(segment)
        self._write_segment = max([*self._segments(), self._segment])
        self._fd = self._open_segment(self._write_segment)
        self._size = os.fstat(self._fd).st_size

    def keep(self) -> bool:
        """Retain frames after they are read; return whether an earlier runner did."""
        self._position_file = _KEPT_POSITION_FILE
        segment, offset, _ = _read_position(self._folder, _KEPT_POSITION_FILE)
        if not self._path(segment).exists():
            return False
        self._segment, self._offset = segment, offset
        return (self._folder / _KEPT_POSITION_FILE).exists()

    def append(
        self,
        rank: int,
        last: int,
        lines: list[bytes],
        *,
        sync: bool = False,
        may_lose: bool = False,
    ) -> bool:
        """Add `lines`, whose last one has number `last`; never waits for room.

        False: disk and memory are full, and these lines, which `may_lose`, are not kept.
        """
        entry = Entry(rank, last, b"".join(lines), sync)
        with self._changed:
            kept = (not self._held and self._store(entry)) or self._hold(entry, may_lose=may_lose)
        self.on_append()
        return kept

    def offer(self, rank: int, last: int, lines: list[bytes]) -> bool:
        """Add `lines` that a peer holds until they are on this disk; return whether they are."""
        with self._changed:
            kept = self._store(Entry(rank, last, b"".join(lines), sync=False))
        self.on_append()
        return kept

    def last_number(self, rank: int) -> int:
        """Return the last number of a rank, on the disk or held."""
        with self._changed:
            held = [entry.last for entry in self._held if entry.rank == rank]
            return held[-1] if held else self.highest.get(rank, 0)

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to read; False if there was nothing in time."""
        with self._changed:
            return self._changed.wait_for(self._has_news, seconds)

    def _has_news(self) -> bool:
        return not self._is_caught_up or (self._finished and not self._held)

    def finish(self) -> None:
        """Finish: nothing more will be written, and the reader need not wait any longer."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    @property
    def is_read(self) -> bool:
        """Whether everything given has been acknowledged."""
        return self._is_caught_up and not self._held

    @property
    def _is_caught_up(self) -> bool:
        return (self._segment, self._offset) == (self._write_segment, self._size)

    def peek(self, max_bytes: int) -> list[bytes]:
        """Return the oldest unacknowledged lines: at least one, up to `max_bytes`."""
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
        is_kept = self._position_file == _KEPT_POSITION_FILE
        with contextlib.suppress(FileNotFoundError):
            self._path(done - MOST_KEPT_SEGMENTS if is_kept else done).unlink()
        if not is_noted:
            # The disk was full; it is no longer.
            self._note_position()

    def _note_position(self) -> bool:
        try:
            position = self._segment, self._offset
            _write_position(self._folder / self._position_file, position, self.highest)
        except OSError:
            return False
        return True

    def _store(self, entry: Entry) -> bool:
        """Write one entry to the disk, if there is room. Under the lock, as all that follows."""
        if self._size and self._size + len(entry.data) > self._segment_bytes:
            self._start_segment()
        if not self._write(entry.data, sync=entry.sync):
            return False
        self._size += len(entry.data)
        self.highest[entry.rank] = entry.last
        self._changed.notify_all()
        return True

    def _hold(self, entry: Entry, *, may_lose: bool) -> bool:
        if may_lose and self._held_bytes + len(entry.data) > HELD_BYTES:
            return False
        self._held.append(entry)
        self._held_bytes += len(entry.data)
        if not self._is_retrying:
            self._is_retrying = True
            threading.Thread(target=self._retry, daemon=True, name="full-disk").start()
        return True

    def _retry(self) -> None:
        while not self._store_held():
            time.sleep(_FULL_DISK_RETRY_S)
        self.on_append()

    def _store_held(self) -> bool:
        """Write held frames while the disk has space; return whether none is left."""
        with self._changed:
            while self._held and self._store(self._held[0]):
                self._held_bytes -= len(self._held.popleft().data)
            self._is_retrying = bool(self._held)
            self._changed.notify_all()
            return not self._held

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

    def _write(self, data: bytes, *, sync: bool) -> bool:
        """Write all of it, or nothing and return False."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
            if sync:
                os.fsync(self._fd)
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
    """Yield the unacknowledged lines in the journal of a runner that has ended."""
    segment, offset, _ = _read_position(folder)
    for number in _segment_numbers(folder):
        if number < segment:
            continue
        with (folder / f"{number:08d}{_SUFFIX}").open("rb") as file:
            file.seek(offset if number == segment else 0)
            for line in file:
                if line.endswith(b"\n"):
                    yield line


def last_acknowledged(folder: Path) -> dict[int, int]:
    """Return each rank's last number in the journal at the time of an acknowledgement."""
    return _read_position(folder)[2]


def _segment_numbers(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*" + _SUFFIX))


def _whole_lines(file: IO[bytes], budget: int, max_bytes: int) -> Iterator[bytes]:
    """Yield lines from `file`: at least one, up to `max_bytes`, within `budget` bytes (-1: all)."""
    taken = 0
    for line in file:
        if budget >= 0 and taken + len(line) > budget:
            return
        if taken and taken + len(line) > max_bytes:
            return
        taken += len(line)
        yield line


def _read_position(folder: Path, name: str = _POSITION_FILE) -> tuple[int, int, dict[int, int]]:
    try:
        position = json.loads((folder / name).read_text())
    except (OSError, ValueError):
        return 1, 0, {}
    highest = {int(rank): int(seq) for rank, seq in position["highest"].items()}
    return int(position["segment"]), int(position["offset"]), highest


def _write_position(path: Path, position: tuple[int, int], highest: dict[int, int]) -> None:
    segment, offset = position
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"segment": segment, "offset": offset, "highest": dict(highest)}))
    new.replace(path)
