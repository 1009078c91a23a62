"""A thread that writes the summary of a context for the runner of its portal job.

A driver outside of the job, such as a laptop, sends it to a host of the job, whose agent writes it.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from monarch_client.context.driver.summary import Summarized, summary_of
from monarch_client.context.hosting.summary_file import summary_file

if TYPE_CHECKING:
    from monarch_client.wire.tasks import ContextSummary

PACE_S = 1.0
# An unchanged summary is written again, as a sign of life.
WRITE_AGAIN_S = 15.0
_numbers = itertools.count(1)
Write = Callable[[bytes], None]


class SummaryWriter:
    """The summary of a context, from `start` to `stop`. `send`: a way to a host that writes it."""

    def __init__(self, driver: Summarized, send: Write | None) -> None:
        self._driver = driver
        file = summary_file(f"{os.getpid()}-{next(_numbers)}")
        self._to = file.write if file else send
        self._machine = "" if file else socket.gethostname()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="context summary")
        self._written: ContextSummary | None = None
        self._written_at = 0.0

    def start(self) -> None:
        """Start the thread, in a job of a portal."""
        if self._to is not None:
            self._thread.start()

    def stop(self) -> None:
        """End the thread, and write the last summary."""
        if self._to is None:
            return
        self._stopping.set()
        self._thread.join()
        self._write(self._to, is_open=False)

    def _run(self) -> None:
        while self._to is not None and not self._stopping.wait(PACE_S):
            self._write(self._to, is_open=True)

    def _write(self, to: Write, *, is_open: bool) -> None:
        with self._driver.loop.lock:
            summary = summary_of(self._driver, is_open=is_open, machine=self._machine)
        now = time.monotonic()
        if summary == self._written and now - self._written_at < WRITE_AGAIN_S:
            return
        self._written, self._written_at = summary, now
        to(msgspec.json.encode(summary))
