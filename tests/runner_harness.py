"""Starts real runners over node directories of a test, and makes sure that nothing is left."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monarch_client.runner.base.process_tree import marked_processes
from monarch_client.runner.bundle import build
from tests.fake_ingest import FakeIngest

_networks = itertools.count(os.getpid() % 200)
_TOKEN = "secret-token"
SHORT_TIMEOUTS = {"setup_s": 20, "workers_s": 20, "grace_s": 2, "peer_silence_s": 3}


def wait_until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for a condition; AssertionError after the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.02)


class RunnerRig:
    """One attempt: its config, its node directories, its runners, its fake portal."""

    def __init__(self, folder: Path, nodes: int = 1, **settings: Any) -> None:
        self.folder = folder
        # What runners find in their environment, beside the usual.
        self.environment: dict[str, str] = {}
        self.ingest = FakeIngest(_TOKEN)
        self.pyz = build(folder / "runner.pyz")
        self.runners: dict[int, subprocess.Popen[bytes]] = {}
        # Subnets of their own keep tests apart that run at the same time.
        network = f"127.{100 + next(_networks) % 100}.{os.getpid() % 250 + 1}"
        self.config: dict[str, Any] = {
            "format": 1,
            "attempt_id": 17,
            "job_id": 42,
            "attempt_number": 1,
            "project": "default",
            "job_name": "test",
            "portal_url": self.ingest.url,
            "portal_file": None,
            "token": _TOKEN,
            "nodes": [{"rank": k, "address": f"{network}.{10 + k}"} for k in range(nodes)],
            "setup": None,
            "run": "true",
            "envs": {},
            "meshes": None,
            "port": 22222,
            "hub_port": 22223,
            "node_port": 22224,
            "tls": None,
            "python": sys.executable,
            "timeouts": dict(SHORT_TIMEOUTS),
            "linger_s": 30,
        }
        self.config.update(settings)

    def root(self, rank: int = 0) -> Path:
        return self.folder / f"rank-{rank}"

    def write(self, name: str, text: str) -> None:
        """Put a file into the work directory of every node."""
        for node in self.config["nodes"]:
            path = self.root(node["rank"]) / "workdir" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def start(self, *ranks: int, python: str = sys.executable) -> None:
        """Start the runners of `ranks`, or of all."""
        config = self.folder / "attempt.json"
        config.write_text(json.dumps(self.config))
        for rank in ranks or range(len(self.config["nodes"])):
            self.root(rank).mkdir(parents=True, exist_ok=True)
            log = (self.folder / f"runner-{rank}.log").open("ab")
            argv = [python, str(self.pyz), "--config", str(config), "--rank", str(rank)]
            self.runners[rank] = subprocess.Popen(
                [*argv, "--root", str(self.root(rank))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**self._environment(), **self.environment},
            )
            log.close()

    def wait(self, seconds: float = 30.0) -> dict[int, int]:
        """Wait until all runners have ended; their exit codes."""
        return {rank: runner.wait(seconds) for rank, runner in self.runners.items()}

    def run(self, seconds: float = 60.0) -> dict[str, Any]:
        """Start everything and wait for the end; the end frame."""
        self.start()
        self.wait(seconds)
        return self.ingest.end

    def stop_rank(self, rank: int, number: int = signal.SIGTERM) -> None:
        self.runners[rank].send_signal(number)

    def processes(self, rank: int | None = None) -> list[int]:
        """Return the running processes of the attempt, without the runners."""
        ranks = range(len(self.config["nodes"])) if rank is None else [rank]
        return [pid for k in ranks for pid in marked_processes(self.root(k))]

    def log(self, rank: int = 0) -> str:
        """Return the output of a runner itself; "" if there was no error."""
        return (self.folder / f"runner-{rank}.log").read_text()

    def close(self) -> None:
        """End every process, however the test went."""
        for runner in self.runners.values():
            if runner.poll() is None:
                os.killpg(runner.pid, signal.SIGKILL)
            runner.wait(10)
        self.ingest.stop()
        wait_until(lambda: not self._kill_leftovers())

    def _kill_leftovers(self) -> list[int]:
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        # Not the user's own: scripts of jobs read its .bashrc.
        return {"PATH": path, "HOME": str(self.folder), "LANG": "C.UTF-8"}


def free_port(address: str = "127.0.0.1") -> int:
    """Return a port on which no process listens."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port
