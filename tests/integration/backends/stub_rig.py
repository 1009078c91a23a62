"""The SkyPilot backend over a stand-in for SkyPilot's server: real client, real runners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jobs.backends.base import LaunchRequest
from jobs.backends.local_ended import EndedNames
from jobs.backends.skypilot import SkyPilotBackend
from jobs.backends.skypilot_calls import SkyPilotCalls
from jobs.backends.skypilot_staging import Staging, StagingOptions
from jobs.errors import BackendError
from monarch_client.skypilot.caller import SkyCaller
from tests.fake_ingest import FakeIngest
from tests.integration.backends.rigs import LINE, NODES, PROGRAMS, Behaviour, make_request
from tests.runner_harness import wait_until
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess

INFRA = "slurm/stub/all"


class StubRig:
    """`callers` are what several processes of a portal would have, one each."""

    def __init__(self, home: Path, stub: StubProcess, callers: Sequence[SkyCaller]) -> None:
        self.stub = stub
        place = {"infra": INFRA, "capacity": NODES, "usd_per_hour": 3.6, "can_stop": True}
        stub.plan(places=[place])
        self.ingest = FakeIngest()
        self._home = home
        self._callers = callers
        self._processes = 0
        self._carrier = "push"
        self._requests: dict[str, LaunchRequest] = {}
        self.backend = self.another_process()

    def request(self, behaviour: Behaviour, nodes: int = 1) -> LaunchRequest:
        spec = {"run": PROGRAMS[behaviour], "resources": {"infra": INFRA}}
        request = make_request(spec, nodes, self.ingest.url)
        self._requests[request.cluster_name] = request
        return request

    def another_process(self) -> SkyPilotBackend:
        options = StagingOptions(self._home / "staging", self._carrier, torchmonarch="")
        caller = self._callers[self._processes % len(self._callers)]
        self._processes += 1
        return SkyPilotBackend(
            SkyPilotCalls(caller), Staging(options, _no_upload), EndedNames(self._home / "ended")
        )

    def incarnations(self, name: str) -> list[str]:
        return [
            f"{event['hash']}/{event['job_name']}"
            for event in self.stub.witness.events("job_submitted", cluster=name)
        ]

    def started_once(self, name: str) -> bool:
        return len(self.incarnations(name)) == 1 == len(self._launches(name))

    def wait_for_line(self, name: str) -> None:
        wait_until(lambda: LINE in self.ingest.texts() or self._is_printed(name))

    def cut_off(self) -> None:
        self._carrier = "pull"
        self.ingest.stop()
        self.backend = self.another_process()

    def kill_everything(self, name: str) -> None:
        processes.end(processes.JOB_MARK, self.stub.cloud.folder(name))

    def remains(self, name: str) -> list[str]:
        # That a name was used is remembered, and is all.
        folders = (self._home / "staging" / name, self.stub.cloud.folder(name))
        pids = processes.marked(processes.NODE_MARK, self.stub.cloud.folder(name))
        return [*(str(path) for path in folders if path.exists()), *map(str, pids)]

    def close(self) -> None:
        """Whatever a test has left goes with the stub."""
        self.ingest.stop()
        self.stub.close()

    def _launches(self, name: str) -> list[object]:
        return list(self.stub.witness.events("launch_begun", cluster=name))

    def _is_printed(self, name: str) -> bool:
        if self._carrier != "pull":
            return False
        request = self._requests[name]
        try:
            frames = self.backend.frames(name, {}, attempt_id=request.attempt_id)
            return any(LINE.encode() in frame for frame in frames)
        except BackendError:
            return False


@contextmanager
def _no_upload(reference: str) -> Iterator[Path]:
    raise AssertionError(f"no test here brings {reference}")
    yield Path()
