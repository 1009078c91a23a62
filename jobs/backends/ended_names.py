"""Names of clusters that were torn down: they are never launched again.

A process that was stopped just before a launch, and goes on when its job has long ended, would
otherwise bring back machines that the portal no longer knows of.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.backends.private_files import make_directory

# No process is suspended for longer and then goes on with its work.
KEPT_S = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class EndedNames:
    """One empty file a name, in one directory."""

    directory: Path

    def add(self, name: str) -> None:
        """Remember `name`, and forget those of long ago."""
        make_directory(self.directory, 0o700)
        (self.directory / name).touch()
        for path in self.directory.iterdir():
            # Another process may forget it at the same time.
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - KEPT_S:
                    path.unlink()

    def __contains__(self, name: str) -> bool:
        return (self.directory / name).exists()
