"""A thread that writes the summary of a context for the runner of its portal job.

Its folder is in the environment of a job's programs; elsewhere there is none, and no thread.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from monarch_client.context.driver.summary import Summarized, summary_of

if TYPE_CHECKING:
    from monarch_client.wire.tasks import ContextSummary

FOLDER_VARIABLE = "MPORTAL_TASKS_FOLDER"
PACE_S = 1.0
# An unchanged summary is written again, as a sign of life.
WRITE_AGAIN_S = 15.0
_numbers = itertools.count(1)


class SummaryWriter:
    """The summary of a context as a file, from `start` to `stop`."""

    def __init__(self, driver: Summarized) -> None:
        self._driver = driver
        folder = os.environ.get(FOLDER_VARIABLE, "")
        self._path = Path(folder) / f"{os.getpid()}-{next(_numbers)}.json" if folder else None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="context summary")
        self._written: ContextSummary | None = None
        self._written_at = 0.0

    def start(self) -> None:
        """Start the thread, in a job of a portal."""
        if self._path is not None:
            self._thread.start()

    def stop(self) -> None:
        """End the thread, and write the last summary."""
        if self._path is None:
            return
        self._stopping.set()
        self._thread.join()
        self._write(self._path, is_open=False)

    def _run(self) -> None:
        while self._path is not None and not self._stopping.wait(PACE_S):
            self._write(self._path, is_open=True)

    def _write(self, path: Path, *, is_open: bool) -> None:
        with self._driver.loop.lock:
            summary = summary_of(self._driver, is_open=is_open)
        now = time.monotonic()
        if summary == self._written and now - self._written_at < WRITE_AGAIN_S:
            return
        self._written, self._written_at = summary, now
        new = path.with_suffix(".new")
        # A full disk, or the folder of an attempt that has ended: the context goes on without it.
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            new.write_bytes(msgspec.json.encode(summary))
            new.replace(path)
