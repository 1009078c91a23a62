"""Files of credentials: each is written whole or not at all, and opened by its owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs.backends.file_locks import locked_file
from jobs.errors import PortalBusyError

MOST_BYTES = 512 * 1024
_LOCK = ".clouds.lock"
# A change takes milliseconds.
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class PrivateHome:
    """The HOME that SkyPilot's server has. Paths are relative to it."""

    path: Path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time merge its changes into the files.

        PortalBusyError: another process holds the lock for too long.
        """
        self._make(self.path)
        with locked_file(self.path / _LOCK, _PATIENCE_S) as is_alone:
            if not is_alone:
                raise PortalBusyError(
                    "Another process has been changing the credentials of clouds for "
                    f"{_PATIENCE_S:g} s. Try again in a moment."
                )
            yield

    def read(self, name: str) -> str:
        """Return the content of the file; "" if there is none."""
        try:
            return (self.path / name).read_text()
        except FileNotFoundError:
            return ""

    def write(self, name: str, text: str) -> None:
        """Put `text` in place of what the file holds."""
        target = self.path / name
        self._make(target.parent)
        draft = target.with_name(f".{target.name}.unfinished")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)

    def remove(self, name: str) -> None:
        """Remove the file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def _make(self, directory: Path) -> None:
        """Make `directory` and those between it and this home, closed to all other users."""
        below = directory.relative_to(self.path).parts
        for depth in range(len(below) + 1):
            part = self.path.joinpath(*below[:depth])
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.chmod(0o700)
