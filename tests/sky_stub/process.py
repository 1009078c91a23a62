"""A stub for tests: a process on a port of its own, its plan, and its sudden death."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.sky_stub import plan, processes
from tests.sky_stub.cloud import Cloud
from tests.sky_stub.disk import read_json, write_json
from tests.sky_stub.witness import Witness
from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parents[2]
_numbers = itertools.count(1)


class StubProcess:
    """A stub's server and the folder that outlives it. Starts at once; `close` ends everything."""

    def __init__(self, state: Path, token: str | None = None, port: int = 0) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self.state = state.resolve()
        self.cloud = Cloud(self.state)
        self.witness = Witness(self.state)
        self.token = token
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """The endpoint that SkyPilot's client is given."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the server lives; one that is stopped does."""
        return self._process is not None and self._process.poll() is None

    def plan(self, **keys: Any) -> None:
        """Set these keys of the plan (see `plan.py`); the others stay."""
        for fault in keys.get("faults", ()):
            # Used-up faults are recorded by name, so each gets a new one.
            fault.setdefault("name", f"{fault['do']}-{os.getpid()}-{next(_numbers)}")
        path = self.state / plan.FILE_NAME
        write_json(path, {**read_json(path, {}), **keys})

    def strike(self, do: str, on: str = "*", times: int | None = 1, **more: Any) -> None:
        """Plan one more fault; `times` None: for ever."""
        known = read_json(self.state / plan.FILE_NAME, {}).get("faults", [])
        bound = {} if times is None else {"times": times}
        self.plan(faults=[*known, {"do": do, "on": on, **bound, **more}])

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        argv = ["-m", "tests.sky_stub", "--port", str(self.port), "--state", str(self.state)]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        if self.token is not None:
            environment["SKY_STUB_TOKEN"] = self.token
        with (self.state / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *argv],
                cwd=CHECKOUT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert eventually(self._listens, timeout_s=20), (self.state / "server.log").read_text()

    def kill(self) -> None:
        """Kill the server with SIGKILL: requests are forgotten, clusters and jobs go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kill it and start another one."""
        self.kill()
        self.start()

    def close(self) -> None:
        """End the server and every process of every node."""
        self.kill()
        processes.end(processes.NODE_MARK, self.state)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def free_port() -> int:
    """Find a port on which no process listens now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
