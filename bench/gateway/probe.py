"""The measured program: `probe.py native|gateway|steady`. It prints lines that start with RESULT.

Native, it is the driver of a job; else it is attached through the portal. `steady` prints the time
of each answered call until it is ended.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

from monarch.actor import Actor, endpoint

CALLS, WARM_UP = 300, 50
RESULT = "RESULT"
LARGE_BYTES, LARGE_TIMES = 100_000_000, 3


class Echo(Actor):  # type: ignore[misc]  # monarch has no types
    """An actor that answers at once."""

    @endpoint  # type: ignore[untyped-decorator]
    def length(self, data: bytes) -> int:
        """Return the size of an argument."""
        return len(data)


def main(mode: str) -> None:
    """Measure, and print the result."""
    if mode == "native":
        meshes: Any = importlib.import_module("mportal_runtime").meshes
    else:
        meshes = importlib.import_module("monarch_client.gateway").connect().meshes
    echoes = meshes.hosts.spawn_procs(per_host={"procs": 1}).spawn("echo", Echo)
    if mode == "steady":
        stay(echoes)
    found = {
        "head_ms": calls_ms(echoes.slice(hosts=0)),
        "elsewhere_ms": calls_ms(echoes.slice(hosts=1)),
        "large_s": large_s(echoes.slice(hosts=0)),
    }
    print(RESULT, json.dumps(found), flush=True)


def calls_ms(echo: Any) -> list[float]:
    """Return the milliseconds of each small call."""
    times = [timed(echo, b"x") for _ in range(WARM_UP + CALLS)]
    return [1000 * seconds for seconds in times[WARM_UP:]]


def large_s(echo: Any) -> float:
    """Return the seconds of the fastest call with a large argument."""
    data = bytes(LARGE_BYTES)
    return min(timed(echo, data) for _ in range(LARGE_TIMES))


def stay(echoes: Any) -> None:
    """Make calls without end; print the time of each answer."""
    while True:
        timed(echoes.slice(hosts=0), b"x")
        print(RESULT, time.monotonic(), flush=True)
        time.sleep(0.02)


def timed(echo: Any, data: bytes) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    echo.length.call_one(data).get(timeout=120)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1])
