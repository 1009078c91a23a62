"""Programs of users of SkyPilotJob, each a process: one has Monarch once, and may die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
END_S = 90.0
# What every program here begins with.
PRELUDE = """\
import logging, os, signal, sys, threading, time
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from monarch.actor import Actor, endpoint
from monarch_client.skypilot import SkyPilotJob, job_errors, task
task.CLIENT_GONE_S, task.FIRST_CLIENT_S, task.MINUTE_S = 1, 10, 0.2

class Host(Actor):
    @endpoint
    def rank(self):
        return os.environ["SKYPILOT_NODE_RANK"]

    @endpoint
    def parent(self):
        return os.getppid()

def ranks(mesh):
    actors = mesh.spawn_procs(per_host={"procs": 1}).spawn("host", Host)
    return sorted(value for _, value in actors.rank.call().get(timeout=30).items())

def say(*words):
    print("said:", *words, flush=True)
"""


class Client:
    """A program and its output. `close` ends it. `prefix` is a command that starts it."""

    def __init__(
        self,
        folder: Path,
        program: str,
        environment: dict[str, str],
        prefix: Sequence[str] = (),
    ) -> None:
        number = len(list(folder.glob("client-*.py")))
        file = folder / f"client-{number}.py"
        # In the test's own words: what a user would write in a file.
        file.write_text(PRELUDE + program)
        self._log = folder / f"client-{number}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, str(file)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        """All it printed."""
        return self._log.read_text(errors="replace")

    @property
    def said(self) -> list[str]:
        """The lines of its `say`."""
        lines = self.text.splitlines()
        return [line.removeprefix("said: ") for line in lines if line.startswith("said: ")]

    def wait_for(self, words: str, timeout_s: float = END_S) -> None:
        """Wait until it has printed this."""
        there = eventually(lambda: words in self.text or self._has_ended, timeout_s=timeout_s)
        assert there and words in self.text, self.text

    def strike(self, number: signal.Signals) -> int:
        """Send it a signal; its exit code."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        try:
            return self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there:\n{self.text}") from None

    def close(self) -> None:
        """End it, whatever it does."""
        if not self._has_ended:
            self._process.kill()
        self._process.wait()

    @property
    def _has_ended(self) -> bool:
        return self._process.poll() is not None


def environment_of(home: Path, endpoint: str, **more: str) -> dict[str, str]:
    """Return what a user of the SkyPilot server at `endpoint` has, `home` being their HOME."""
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(home),
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
        "SKYPILOT_API_SERVER_ENDPOINT": endpoint,
        "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        **more,
    }
