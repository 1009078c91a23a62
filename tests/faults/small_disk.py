"""A disk of its own for a test's portal: small, in memory, filled and emptied at will."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

MIB = 1024 * 1024


class SmallDisk:
    """A tmpfs over `path`, with a file that takes up what the test wants taken."""

    def __init__(self, path: Path, size_mb: int) -> None:
        self.path = path
        path.mkdir(mode=0o711, parents=True)
        options = f"size={size_mb}m,mode=0711"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=True)
        self._filler = path / "filler"

    @property
    def free(self) -> int:
        """Bytes that anyone but root may still use."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def leave(self, free: int) -> None:
        """Fill up until only `free` bytes are left."""
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        block = b"\0" * MIB
        try:
            # Others write and delete meanwhile: what is left is looked at anew each time.
            while (excess := self.free - free) > 0:
                os.write(descriptor, block[:excess])
        except OSError:
            if free:
                raise
        finally:
            os.close(descriptor)

    def empty(self) -> None:
        """Release the space again."""
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it, even if a process still has a file open there."""
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "--lazy", str(self.path)], check=True)
