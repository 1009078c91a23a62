"""Bare processes: what a launch costs where no portal has a part in it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench import bare_servers
from monarch_portal.embedded.memory import pss_bytes

EMPTY = "an empty subprocess (true)"
INTERPRETER = "a bare Python that prints a line"


def seconds_to_end() -> float:
    """Start an empty subprocess, and return how long it took until it had ended."""
    began = time.perf_counter()
    subprocess.run(["true"], check=True)
    return time.perf_counter() - began


def seconds_to_first_line() -> float:
    """Start a Python that prints one line, and return how long it took until the line was here."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", "print('hi')"], stdout=subprocess.PIPE
    ) as interpreter:
        assert interpreter.stdout is not None
        line = interpreter.stdout.readline()
        took = time.perf_counter() - began
    if line != b"hi\n":
        raise RuntimeError(f"a bare Python printed {line!r}")
    return took


@contextmanager
def started_steadily(every_s: float) -> Iterator[list[float]]:
    """Start an empty subprocess every so often during the block; yields their seconds so far."""
    found: list[float] = []
    stop = threading.Event()

    def start_them() -> None:
        while True:
            found.append(seconds_to_end())
            if stop.wait(every_s):
                return

    starter = threading.Thread(target=start_them)
    starter.start()
    try:
        yield found
    finally:
        stop.set()
        starter.join()


def idle_memory_mb(interpreters: int) -> float:
    """Return the memory of an empty PostgreSQL and Redis and of so many idle Python processes."""
    with bare_servers.running(durable=False) as servers, ExitStack() as up:
        pids = [up.enter_context(_idle_interpreter()) for _ in range(interpreters)]
        return servers.memory_mb() + sum(map(pss_bytes, pids)) / 1e6


@contextmanager
def _idle_interpreter() -> Iterator[int]:
    """Start a Python that waits until its input ends; yields its pid."""
    program = "import sys; print('hi', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
