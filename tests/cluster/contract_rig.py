"""The SkyPilot backend over SkyPilot's own server, on the rig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from monarch_client.skypilot.caller import SkyCaller
from tests.cluster.rig.machine import Rig
from tests.integration.backends.asking import retried
from tests.integration.backends.rigs import LINE
from tests.integration.backends.sky_rig import SkyPilotRig
from tests.runner_harness import wait_until
from tests.sky_stub import processes
from tests.waiting import eventually

# A whole node each: else Slurm gives a node to several clusters.
WHOLE_NODES = {"infra": "slurm/rig", "accelerators": "H100:8"}
# Slurm as it is here ends only what it has started itself; a runner takes its time to end the rest.
ENDED_S = 60.0


class ClusterRig(SkyPilotRig):
    """The rig of the backend's contract; its machines are Slurm's."""

    # A launch takes SkyPilot half a minute here, and three times that on a busy machine.
    patience_s = 420.0

    def __init__(self, home: Path, machine: Rig, callers: Sequence[SkyCaller]) -> None:
        self._machine = machine
        super().__init__(home, WHOLE_NODES, callers)

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Let nodes reach the portal that takes their frames until the block ends."""
        with self._machine.way_to(int(self.ingest.url.rpartition(":")[2])) as way:
            self.portal_url = way.url
            yield

    def incarnations(self, name: str) -> list[str]:
        rows = self._callers[0].call("jobs", {"cluster_name": name}, self.patience_s)
        return [f"{held}/{row['job_id']}" for held in self._allocations(name) for row in rows]

    def started_once(self, name: str) -> bool:
        # What was handed over just now is not in every answer of SkyPilot's yet.
        eventually(lambda: self.incarnations(name), timeout_s=ENDED_S)
        return len(self.incarnations(name)) == 1 == len(self._allocations(name))

    def kill_everything(self, name: str) -> None:
        # A cluster is up before SkyPilot has started anything on it.
        wait_until(lambda: self._is_under_way(name), self.patience_s)
        processes.end_all(lambda: _processes_of(name))

    def remains(self, name: str) -> list[str]:
        staged = [str(path) for path in (self.staged(name),) if path.exists()]
        rows = self._callers[0].call("status", {"names": [name]}, self.patience_s)
        found = [*staged, *(f"row {row['name']}" for row in rows), *self._allocations(name)]
        if found or eventually(lambda: not _processes_of(name), timeout_s=ENDED_S):
            return found
        return [f"process {pid}" for pid in sorted(_processes_of(name))]

    def close(self) -> None:
        """Terminate all clusters that a test has left."""
        for name in self._requests:
            retried(self, lambda name=name: self.backend.tear_down(name))
            # A runner whose portal is away waits for it.
            processes.end_all(lambda name=name: _processes_of(name))
        self.ingest.stop()

    def _is_under_way(self, name: str) -> bool:
        nodes = self._requests[name].num_nodes
        return self.ingest.texts().count(LINE) >= nodes or self._is_printed(name)

    def _allocations(self, name: str) -> list[str]:
        return [one for one in self._machine.allocations() if one.startswith(name)]


def _processes_of(name: str) -> set[int]:
    """Find a cluster's runners and programs on all nodes, but not Slurm's and SkyPilot's own."""
    return processes.those(lambda pid: _is_runner(pid, name.encode()))


def _is_runner(pid: int, name: bytes) -> bool:
    with suppress(OSError):
        # SkyPilot's directories have the cluster's name in theirs.
        line = (processes.PROC / str(pid) / "cmdline").read_bytes()
        return b"/runner.pyz" in line and b"/" + name + b"-" in line
    return False
