"""The measured calls. As a program it is the driver of a job, and prints a line with RESULT."""

from __future__ import annotations

import importlib
import json
import time
from typing import Any

CALLS, WARM_UP = 300, 50
RESULT = "RESULT"


def calls_ms(hosts: Any, actor: Any) -> list[float]:
    """Return the milliseconds of each small call to an actor on the head."""
    procs = hosts.slice(hosts=0).spawn_procs()
    echo = procs.spawn("echo", actor)
    return [timed_ms(echo) for _ in range(WARM_UP + CALLS)][WARM_UP:]


def timed_ms(echo: Any) -> float:
    """Return the milliseconds of one call."""
    begin = time.perf_counter()
    echo.length.call_one(b"x").get(timeout=60)
    return 1000 * (time.perf_counter() - begin)


def main() -> None:
    """Measure as the driver of a job."""
    echo = importlib.import_module("echoes").Echo
    meshes = importlib.import_module("mportal_runtime").meshes
    print(RESULT, json.dumps(calls_ms(meshes.hosts, echo)), flush=True)


if __name__ == "__main__":
    main()
