"""Payloads on disk, in files without a name, so that no end of the process leaves one behind."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class Spilled:
    """A payload on disk."""

    file: _File
    offset: int
    length: int

    def __len__(self) -> int:
        """Return its size in bytes."""
        return self.length

    def read(self) -> bytes:
        """Return the payload."""
        parts, offset, left = [], self.offset, self.length
        while left:
            part = os.pread(self.file.descriptor, left, offset)
            if not part:
                raise OSError("a file of results is shorter than what was written to it")
            parts.append(part)
            offset += len(part)
            left -= len(part)
        return b"".join(parts)


class Spill:
    """The payloads of one outbox on disk. A file is freed once none of its payloads is used."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: _File | None = None

    def store(self, payload: bytes) -> Spilled:
        """Write a payload to disk. OSError: there is no space."""
        if self._file is None or self._file.size >= _FILE_BYTES:
            self._file = _open(self._folder)
        offset = self._file.append(payload)
        return Spilled(self._file, offset, len(payload))


class _File:
    """A file without a name, which ends with its last payload."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = 0

    def append(self, payload: bytes) -> int:
        """Write a payload at the end, and return where it begins."""
        offset, view = self.size, memoryview(payload)
        while view:
            written = os.pwrite(self.descriptor, view, self.size)
            self.size += written
            view = view[written:]
        return offset

    def __del__(self) -> None:
        os.close(self.descriptor)


def _open(folder: str) -> _File:
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return _File(os.dup(file.fileno()))
