"""Ten jobs that print without end, each line with the moment at which it was written."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.logs.ground import LogGround, Talker
from bench.logs.lines import Runner
from bench.logs.posting import Connection
from bench.logs.talk import stamped

# The pause of a runner between two posts (`monarch_client.runner.delivery.push`).
BATCH_PAUSE_S = 0.1


class _Talking(threading.Thread):
    """A thread that posts all lines of a job since its last post, as a runner does."""

    def __init__(self, place: LogGround, talker: Talker, lines_per_s: float) -> None:
        super().__init__(daemon=True)
        self._connection, self._talker = Connection(place), talker
        self._every_s = 1 / lines_per_s
        self.stop = threading.Event()
        self.failure: Exception | None = None

    def run(self) -> None:
        """Post lines until the thread is stopped."""
        runner, written_to = Runner(), time.time()
        try:
            while not self.stop.wait(BATCH_PAUSE_S):
                count = int((time.time() - written_to) / self._every_s)
                lines = [stamped(written_to + step * self._every_s) for step in range(count)]
                written_to += count * self._every_s
                self._connection.post(self._talker, runner.body(lines))
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits for it
            self.failure = error


@contextmanager
def talking(place: LogGround, talkers: list[Talker], lines_per_s: float) -> Iterator[None]:
    """Print `lines_per_s` in all for the length of the block."""
    threads = [_Talking(place, each, lines_per_s / len(talkers)) for each in talkers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop.set()
        for thread in threads:
            thread.join()
        for thread in threads:
            if thread.failure is not None:
                raise thread.failure
