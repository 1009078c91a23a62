"""Programs of users that drive a job's meshes through a gateway, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import eventually

END_S = 90.0
CHECKOUT = Path(__file__).resolve().parents[3]
PRELUDE = """\
import logging, os, signal, sys, threading, time
logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
from monarch.actor import Actor, endpoint
from monarch_client.attaching.errors import *
from monarch_client.gateway.connecting import Connection
from monarch_client.gateway.errors import *
from monarch_client.gateway.opening import Opening

class Counter(Actor):
    def __init__(self):
        self.seen = []

    @endpoint
    def rank(self):
        return os.environ["RANK"]

    @endpoint
    def add(self, number, pause_s=0.0):
        time.sleep(pause_s)
        self.seen.append(number)
        return number

    @endpoint
    def all(self):
        return self.seen

    @endpoint
    def length(self, data):
        return len(data)

    @endpoint
    def make(self, size):
        return bytes(size)

    @endpoint
    def die(self):
        os._exit(3)

    @endpoint
    def fail(self):
        raise ValueError("of the actor")

def say(*words):
    print("said:", *words, flush=True)

def wait_for_word():
    say("waits")
    sys.stdin.readline()

OPENING = Opening(sys.argv[1], "job 7", 7, sys.argv[2])
"""
OPENED = """
connection = Connection(OPENING, **OPTIONS)
meshes = connection.meshes
say("open")
"""


class Program:
    """A program and its output."""

    def __init__(
        self, folder: Path, text: str, url: str, ticket: str, options: Mapping[str, object]
    ) -> None:
        number = len(list(folder.glob("program-*.py")))
        file = folder / f"program-{number}.py"
        settings = {"away_limit_s": None, **options}
        file.write_text(PRELUDE + f"OPTIONS = {settings!r}\n" + text)
        self._log = folder / f"program-{number}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(file), url, ticket],
                cwd=folder,
                env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT), "HOME": str(folder)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                text=True,
            )

    @property
    def output(self) -> str:
        """All that it printed."""
        return self._log.read_text(errors="replace")

    @property
    def said(self) -> list[str]:
        """The lines of its `say`."""
        found = [line for line in self.output.splitlines() if line.startswith("said: ")]
        return [line.removeprefix("said: ") for line in found]

    def wait_for(self, words: str, timeout_s: float = END_S) -> None:
        """Wait until it has printed this."""
        seen = eventually(
            lambda: words in self.output or self.process.poll() is not None, timeout_s=timeout_s
        )
        assert seen and words in self.output, self.output

    def go_on(self) -> None:
        """Let it continue after its `wait_for_word`."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait(self, timeout_s: float = END_S) -> int:
        """Wait for its end; return the exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.output}") from None

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
