"""Common parts of the SkyPilot backend's rigs, for every stand-in of SkyPilot's server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs.backends.base import LaunchRequest
from jobs.backends.ended_names import EndedNames
from jobs.backends.skypilot.backend import SkyPilotBackend
from jobs.backends.skypilot.calls import SkyPilotCalls
from jobs.backends.skypilot.staging import Staging, StagingOptions
from jobs.errors import BackendError
from monarch_client.skypilot.caller import SkyCaller
from tests.fake_ingest import FakeIngest
from tests.integration.backends.rigs import LINE, PATIENCE_S, PROGRAMS, Behaviour, make_request
from tests.runner_harness import wait_until


class SkyPilotRig:
    """`callers` are what several processes of a portal would have, one each."""

    patience_s = PATIENCE_S

    def __init__(self, home: Path, resources: dict[str, Any], callers: Sequence[SkyCaller]) -> None:
        self.home = home
        self.ingest = FakeIngest()
        # Under which address the nodes find it.
        self.portal_url = self.ingest.url
        self._resources = resources
        self._callers = callers
        self._processes = 0
        self._carrier = "push"
        self._requests: dict[str, LaunchRequest] = {}
        self.backend = self.another_process()

    def request(self, behaviour: Behaviour, nodes: int = 1) -> LaunchRequest:
        """Return a request for a job that behaves like that."""
        spec = {"run": PROGRAMS[behaviour], "resources": self._resources}
        request = make_request(spec, nodes, self.portal_url)
        self._requests[request.cluster_name] = request
        return request

    def another_process(self) -> SkyPilotBackend:
        """Return the backend as another process has it."""
        options = StagingOptions(self.home / "staging", self._carrier, torchmonarch="")
        caller = self._callers[self._processes % len(self._callers)]
        self._processes += 1
        return SkyPilotBackend(
            SkyPilotCalls(caller), Staging(options, _no_upload), EndedNames(self.home / "ended")
        )

    def wait_for_line(self, name: str) -> None:
        """Wait until the job has printed."""
        wait_until(lambda: LINE in self.ingest.texts() or self._is_printed(name), self.patience_s)

    def cut_off(self) -> None:
        """Let runners print their frames from now on."""
        self._carrier = "pull"
        self.ingest.stop()
        self.backend = self.another_process()

    def staged(self, name: str) -> Path:
        """Return the folder in which the cluster's work directory is assembled."""
        return self.home / "staging" / name

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
