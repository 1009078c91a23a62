"""The bare way to read a log: a plain file, and the commands that people use on one."""

from __future__ import annotations

import subprocess
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

_PIECE = 1 << 20
# The level that gzip and logrotate use.
_LEVEL = 6


class PlainFile:
    """The bench's lines in a plain text file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, lines: Sequence[str]) -> None:
        """Add lines."""
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def last_s(self, count: int) -> float:
        """Return the seconds of `tail` for the last `count` lines."""
        return self._seconds("tail", "-n", str(count))

    def jump_s(self, line: int, count: int) -> float:
        """Return the seconds of `sed` for `count` lines after a line."""
        end = line + count
        return self._seconds("sed", "-n", f"{line + 1},{end}p;{end}q")

    def first_matches_s(self, words: str, count: int) -> float:
        """Return the seconds of `grep` for the first `count` lines with these words."""
        return self._seconds("grep", "-F", "-m", str(count), words)

    def all_matches_s(self, words: str) -> float:
        """Return the seconds of `grep` for all lines with these words."""
        return self._seconds("grep", "-F", words)

    def gzip_ratio(self) -> float:
        """Return the ratio of the size under `gzip` to that of the text."""
        packer, packed = zlib.compressobj(_LEVEL), 0
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE):
                packed += len(packer.compress(piece))
        return (packed + len(packer.flush())) / self._path.stat().st_size

    def _seconds(self, *command: str) -> float:
        """Measure a command on the file until its output is read. CalledProcessError: it failed."""
        began = time.monotonic()
        subprocess.run(
            [*command, str(self._path)], check=True, capture_output=True, env={"LC_ALL": "C"}
        )
        return time.monotonic() - began
