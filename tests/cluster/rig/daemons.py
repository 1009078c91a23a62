"""Starting the rig's own processes: a clean environment, a session and a log of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cluster.rig import places
from tests.waiting import eventually

# Nothing of the shell that started the rig reaches its nodes.
ENVIRONMENT = {
    "HOME": str(places.HOME),
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/bash",
}


def start(*argv: str, log: str, **more: str) -> subprocess.Popen[bytes]:
    """Run `argv` in the background, what it prints going to the log of that name."""
    with (places.LOGS / f"{log}.log").open("ab") as output:
        return subprocess.Popen(
            argv,
            env={**ENVIRONMENT, **more},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def await_condition(what: str, condition: Callable[[], object], *, timeout_s: float = 30) -> None:
    """Wait for a condition.

    RuntimeError with the location of the logs if it does not come true in time.
    """
    if not eventually(condition, timeout_s=timeout_s):
        raise RuntimeError(f"{what}: not within {timeout_s:.0f} s. The logs are in {places.LOGS}")


def log_file(name: str) -> Path:
    """Return the path of the log of that name."""
    return places.LOGS / f"{name}.log"
