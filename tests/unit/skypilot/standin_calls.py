"""Calls of a stand-in for the process that asks SkyPilot: what tests need of the protocol."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from monarch_client.skypilot.errors import SkyPilotError, StillBusyError


def echo(value: Any = None) -> Any:
    return value


def noted(diary: str, until: str = "", value: Any = None) -> Any:
    """Write down that it was called; answer once the file `until` exists."""
    with Path(diary).open("a") as file:
        file.write("called\n")
    while until and not Path(until).exists():
        time.sleep(0.01)
    return value


def chatty() -> str:
    sys.stdout.write('{"id": 1, "value": "wrong"}\n')
    sys.stdout.flush()
    os.write(1, b"bytes to where stdout was\n")
    subprocess.run(["echo", "a child of a child"], check=True)
    return "right"


def refused(kind: str) -> None:
    raise SkyPilotError(kind, "No.", {"reasons": ["a", "b"]})


def misunderstood() -> None:
    raise RuntimeError("\x1b[31mnot today\x1b[0m")


def busy() -> None:
    raise StillBusyError("busy")


def surroundings() -> dict[str, Any]:
    return {"environment": dict(os.environ), "directory": str(Path.cwd())}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unreadable() -> object:
    class Handle:
        def __repr__(self) -> str:
            raise NotImplementedError

        def __str__(self) -> str:
            return "handle"

    return {"handle": Handle()}


def pieces(count: int, diary: str = "", error: str = "") -> Iterator[str]:
    """Yield `count` pieces; at its end the diary records how many were requested."""
    made = 0
    try:
        for number in range(count):
            made += 1
            yield f"piece {number}"
        if error:
            raise SkyPilotError(error, "No more.")
    finally:
        if diary:
            Path(diary).write_text(str(made))


def endless(diary: str) -> Iterator[str | None]:
    """Yield a piece and then only signs of life; the diary records that it was closed."""
    try:
        yield "piece"
        while True:
            time.sleep(0.02)
            yield None
    finally:
        Path(diary).write_text("closed")


_OFFERED = (
    *(echo, noted, chatty, refused, misunderstood, busy, surroundings, die, unreadable),
    *(pieces, endless),
)
CALLS: dict[str, Callable[..., Any]] = {call.__name__: call for call in _OFFERED}
