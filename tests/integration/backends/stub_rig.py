"""The SkyPilot backend over a stand-in for SkyPilot's server: real client, real runners."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monarch_client.skypilot.caller import SkyCaller
from tests.integration.backends.rigs import NODES
from tests.integration.backends.sky_rig import SkyPilotRig
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess

INFRA = "slurm/stub/all"


class StubRig(SkyPilotRig):
    """Machines are processes of the stand-in's."""

    def __init__(self, home: Path, stub: StubProcess, callers: Sequence[SkyCaller]) -> None:
        self.stub = stub
        place = {"infra": INFRA, "capacity": NODES, "usd_per_hour": 3.6, "can_stop": True}
        stub.plan(places=[place])
        super().__init__(home, {"infra": INFRA}, callers)

    def incarnations(self, name: str) -> list[str]:
        return [
            f"{event['hash']}/{event['job_name']}"
            for event in self.stub.witness.events("job_submitted", cluster=name)
        ]

    def started_once(self, name: str) -> bool:
        return len(self.incarnations(name)) == 1 == len(self._launches(name))

    def kill_everything(self, name: str) -> None:
        processes.end(processes.JOB_MARK, self.stub.cloud.folder(name))

    def remains(self, name: str) -> list[str]:
        # That a name was used is remembered, and is all.
        folders = (self.staged(name), self.stub.cloud.folder(name))
        pids = processes.marked(processes.NODE_MARK, self.stub.cloud.folder(name))
        return [*(str(path) for path in folders if path.exists()), *map(str, pids)]

    def close(self) -> None:
        """End everything that a test has left, with the stub."""
        self.ingest.stop()
        self.stub.close()

    def _launches(self, name: str) -> list[object]:
        return list(self.stub.witness.events("launch_begun", cluster=name))
