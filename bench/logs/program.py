"""A follower that is a program: it is started, and the age of each line on its output noted."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench.logs.readers import Ages, summary
from bench.logs.talk import READY

OPEN_LIMIT_S = 120.0
WARM_UP_S, SECONDS = 5.0, 15.0


class Program:
    """A follower that runs. Its output comes without delay, as on a terminal."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ages = Ages()
        self._begin = b""
        self._is_open = threading.Event()
        self.reading = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        assert self._process.stdout is not None
        while data := os.read(self._process.stdout.fileno(), 1 << 16):
            self._ages.take(data, time.time())
            if not self._is_open.is_set():
                self._begin += data
                if READY.encode() in self._begin:
                    self._is_open.set()

    def wait_until_open(self) -> None:
        """Wait until the program has received the job's first line. TimeoutError: it has not."""
        if not self._is_open.wait(OPEN_LIMIT_S):
            raise TimeoutError(f"it does not follow: {self._begin[-2000:]!r}")

    def seen(self) -> dict[str, float]:
        """Measure what the program receives from now on, after a warm-up."""
        begin = time.time() + WARM_UP_S
        time.sleep(WARM_UP_S + SECONDS)
        if self._process.poll() is not None:
            raise RuntimeError(f"the follower ended with {self._process.returncode}")
        return summary([self._ages], begin, SECONDS)


@contextmanager
def following(command: list[str], environment: Mapping[str, str]) -> Iterator[Program]:
    """Start it, and end it with the block."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )
    program = Program(process)
    program.reading.start()
    try:
        yield program
    finally:
        process.kill()
        process.wait()
        program.reading.join()
