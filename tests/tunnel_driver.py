"""A program that drives workers through ssh, and the network between the two."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.tcp_proxy import TcpProxy
from tests.monarch_workers import PORT, MonarchWorkers
from tests.ssh_server import SshServer

CHECKOUT = Path(__file__).resolve().parents[1]
ANSWER_S = 120
PROGRAM = """\
import asyncio, json, os, sys
from pathlib import Path
from monarch.actor import Actor, endpoint
from monarch_client.attaching import meshes
from monarch_client.attaching.errors import ConnectionLostError
from monarch_client.attaching.loss import LossAlarm
from monarch_client.attaching.watch import LossWatch
from monarch_client.skypilot.tunnel import way_to

class Host(Actor):
    def __init__(self):
        self.calls = []

    @endpoint
    async def work(self, number, seconds):
        self.calls.append(number)
        await asyncio.sleep(seconds)
        return self.calls

access, host, port, certificates, limit_s, addresses = json.loads(sys.argv[1])
gateway, tunnel = way_to((host, port), "tunnel", Path(certificates), lambda: access)
watch = LossWatch("the job", {host: tunnel.look}, LossAlarm(), limit_s=limit_s)
meshes.join(gateway, Path(certificates))
mesh = meshes.meshes_of({"hosts": addresses})["hosts"]
actors = mesh.spawn_procs(per_host={"procs": 1}).spawn("host", Host)
actors.initialized.get(timeout=60)
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    try:
        calls = [each for _, each in actors.work.call(number, float(line)).get().items()]
    except ConnectionLostError as error:
        print(type(error).__name__, flush=True)
    else:
        print(calls == [list(range(number + 1))] * len(addresses), flush=True)
"""


class Network:
    """The way to a server, such as that of ssh. A cut is with notice, or bytes do not pass."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._address = (host, port)
        self._is_open, self._is_silent = threading.Event(), False
        self._is_open.set()
        self.proxy = TcpProxy(self._dial, lambda: self._look)

    @contextmanager
    def cut(self, *, silently: bool = False) -> Iterator[None]:
        """Interrupt it until the block ends."""
        self._is_silent = silently
        self._is_open.clear()
        if not silently:
            self.proxy.cut_all()
        try:
            yield
        finally:
            self._is_open.set()

    def _dial(self) -> socket.socket:
        if not self._is_open.is_set() and not self._is_silent:
            raise ConnectionRefusedError
        return socket.create_connection(self._address, timeout=10)

    def _look(self, _from_client: bool, _data: bytes) -> bool:
        self._is_open.wait()
        return False


class Driver:
    """The program. `close` ends it, and the ssh server."""

    def __init__(self, folder: Path, workers: MonarchWorkers, limit_s: float = 300.0) -> None:
        self._ssh = SshServer(folder / "ssh")
        self.network = Network(self._ssh.port)
        file = folder / "driver.py"
        file.write_text(PROGRAM)
        access = self._ssh.access(self.network.proxy.port)
        arguments = [access, workers.hosts[0], PORT, str(workers.certificates), limit_s]
        with (folder / "driver.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, file, json.dumps([*arguments, workers.addresses])],
                env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._log = folder / "driver.log"
        assert self.answer() == "ready", self._log.read_text()

    def call(self, seconds: float = 0.0) -> None:
        """Begin a call that lasts so long on every host."""
        assert self._process.stdin
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Wait for the outcome of a call.

        "True" if every host has had every call once and in order.
        """
        assert self._process.stdout
        timer = threading.Timer(ANSWER_S, self._process.kill)
        timer.start()
        try:
            return self._process.stdout.readline().strip()
        finally:
            timer.cancel()

    @property
    def log(self) -> str:
        """The errors of the program."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End it. A repetition does nothing."""
        with self._process:
            self._process.kill()
        self.network.proxy.close()
        self._ssh.close()
