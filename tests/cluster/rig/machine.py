"""The running rig as tests use it: nodes die, clusters are preempted, machines run out."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.rig import daemons, node, places, slurm
from tests.cluster.rig.spaces import run
from tests.faults.tcp_proxy import TcpProxy


@dataclass(frozen=True, slots=True)
class Login:
    """The address and the credentials for reaching the login node by ssh."""

    host: str
    port: int
    user: str
    key: Path

    def run(self, command: str) -> str:
        """Run `command` on the login node and return its output. RuntimeError if it fails."""
        options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        options += ["-o", "LogLevel=ERROR", "-i", str(self.key), "-p", str(self.port)]
        return run("ssh", *options, f"{self.user}@{self.host}", command)


class WayToPortal:
    """A route from the nodes to a port of 127.0.0.1 here; it can be closed temporarily."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_open = True
        self.proxy = TcpProxy(self._connect, host=places.HERE)
        # Under which address nodes find it.
        self.url = f"http://{places.HERE}:{self.proxy.port}"

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Cut all connections and refuse new ones until the block ends."""
        self._is_open = False
        self.proxy.cut_all()
        try:
            yield
        finally:
            self._is_open = True

    def _connect(self) -> socket.socket:
        if not self._is_open:
            raise ConnectionRefusedError
        return socket.create_connection(("127.0.0.1", self._port), timeout=10)


class Rig:
    """The rig that this process runs in. RuntimeError if it runs in none."""

    def __init__(self) -> None:
        if not places.MACHINE_FILE.exists():
            raise RuntimeError("This is no rig: run it with `python -m tests.cluster.rig -- ...`")
        self.nodes: tuple[str, ...] = tuple(json.loads(places.MACHINE_FILE.read_text())["nodes"])
        self.addresses = {name: places.address_of(name) for name in self.nodes}
        self.login = Login(places.HERE, places.SSH_PORT, "root", places.LOGIN_KEY)
        self.home = places.HOME
        self.logs = places.LOGS

    def states(self) -> dict[str, str]:
        """Return each node's state in Slurm, such as idle, mixed, down*."""
        return slurm.states()

    def kill_node(self, name: str) -> None:
        """Cut a node's power: its processes and its network end at once.

        A repetition does nothing.
        """
        node.power_off(name)

    def revive_node(self, name: str) -> None:
        """Start a dead node again, empty, and wait until Slurm considers it ready."""
        node.power_on(name)
        # One that was found dead comes back by itself; one that died unnoticed needs a command.
        daemons.await_condition(f"{name} in Slurm", lambda: self._is_ready(name), timeout_s=60)

    def scancel(self, cluster: str) -> None:
        """Cancel the Slurm jobs of `cluster`, by SkyPilot's name, as a preemption does."""
        for number in slurm.jobs_of(cluster):
            run("scancel", number)

    def nodes_of(self, cluster: str) -> tuple[str, ...]:
        """List the nodes that a SkyPilot cluster holds in Slurm."""
        return slurm.nodes_of(cluster)

    def allocations(self) -> list[str]:
        """List the names of Slurm's living jobs: one for each time that a cluster holds nodes."""
        return slurm.job_names()

    @contextmanager
    def capacity_fault(self, partition: str) -> Iterator[None]:
        """Give clusters no machines in `partition` (main or spare) until the block ends."""
        fault = places.FAULTS / partition
        fault.touch()
        try:
            yield
        finally:
            fault.unlink()

    @contextmanager
    def way_to(self, port: int) -> Iterator[WayToPortal]:
        """Let nodes reach 127.0.0.1:`port` of this machine until the block ends.

        Without it nodes reach only the login node and the package index.
        """
        way = WayToPortal(port)
        try:
            yield way
        finally:
            way.proxy.close()

    def _is_ready(self, name: str) -> bool:
        state = slurm.states().get(name, "")
        if state.startswith(("down", "drain")):
            slurm.resume(name)
        return state in {"idle", "mix", "mixed", "alloc"}
