"""The pull carrier on the node: prints the journal to the log that the portal reads.

There is no acknowledgment, so printed frames stay in the journal, up to its size limit.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import TYPE_CHECKING

from monarch_client.runner.delivery.log_lines import PACKET_BYTES, packet_lines
from monarch_client.runner.journal.final_frames import verdict_frame
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.vocabulary.frames import END, kind_of

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.config import NodeFolder
    from monarch_client.runner.journal.journal import Journal

BATCH_PAUSE_S = 0.1
_LONGEST_WAIT_S = 60.0
# The log stores the samples as well, so they are rarer than in the push carrier.
_FIRST_SAMPLES_S, _SAMPLES_S = 5.0, 30.0


class PrintCarrier:
    """A printer with its own thread, which calls `on_drained` once everything is printed."""

    def __init__(
        self, journal: Journal, attempt_id: int, on_drained: Callable[[], None], fd: int = 1
    ) -> None:
        self.samples = Samples()
        self._samples_at = time.monotonic() + _FIRST_SAMPLES_S
        self._journal = journal
        self._attempt_id = attempt_id
        self._on_drained = on_drained
        self._fd = fd
        self._finishing = threading.Event()
        self._packet = 0
        self._last: list[bytes] = []
        self._thread = threading.Thread(target=self._print, daemon=True, name="print")

    def start(self) -> None:
        """Start to print."""
        # A reader takes packet 1 for the first of all.
        self._packet = 1 if self._journal.keep() else 0
        self._thread.start()

    def finish(self) -> None:
        """Print the rest at once: no further frame will be recorded."""
        self._finishing.set()
        self._journal.finish()

    def _print(self) -> None:
        try:
            while not (self._finishing.is_set() and self._journal.is_read):
                if self._journal.wait(self._wait_s):
                    self._print_batch()
                    # Lines that come together travel together.
                    self._finishing.wait(BATCH_PAUSE_S)
                if time.monotonic() >= self._samples_at:
                    self._print_samples()
            # Repeat the last packet, with the verdict: other nodes' lines may have cut into it.
            self._write(self._last)
        except OSError:
            pass  # the reader has closed the pipe; the journal has everything
        self._finishing.wait()
        self._on_drained()

    @property
    def _wait_s(self) -> float:
        return max(0.0, min(_LONGEST_WAIT_S, self._samples_at - time.monotonic()))

    def _print_samples(self) -> None:
        self._samples_at = time.monotonic() + _SAMPLES_S
        samples = self.samples.take()
        if samples:
            self._packet += 1
            self._write(packet_lines(self._attempt_id, self._packet, samples))

    def _print_batch(self) -> None:
        frames = self._journal.peek(PACKET_BYTES)
        if frames:
            if kind_of(frames[-1]) == END:
                # What follows the last frame is not read.
                self._print_samples()
            self._packet += 1
            self._last = packet_lines(self._attempt_id, self._packet, frames)
            self._write(self._last)
            self._journal.acknowledge(frames)

    def _write(self, lines: list[bytes]) -> None:
        write_lines(self._fd, lines)


def print_verdict(folder: NodeFolder, attempt_id: int, seq: int, fd: int = 1) -> None:
    """Print the verdict, with number `seq`, of an attempt whose frames were pushed.

    Another program than the portal may have acknowledged them; the portal finds it in the log.
    """
    end = verdict_frame(folder, seq)
    if end:
        with contextlib.suppress(OSError):
            write_lines(fd, packet_lines(attempt_id, 1, [end]))


def write_lines(fd: int, lines: list[bytes]) -> None:
    """Write all of `lines`, however slow the reader is. OSError if there is no reader."""
    for line in lines:
        view = memoryview(line)
        while view:
            view = view[_write_some(fd, view) :]


def _write_some(fd: int, view: memoryview) -> int:
    try:
        return os.write(fd, view)
    except BlockingIOError:
        select.select([], [fd], [], 1.0)
        return 0
