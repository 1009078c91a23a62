"""A whole portal on the rig, with a SkyPilot server and a home of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import prepare_home
from tests.portal_process import PortalProcess
from tests.sky_stub.process import free_port
from tests.waiting import eventually

SERVER_START_S = 150.0
JOB_S = 240.0
FINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})
JOBS = "/api/v1/projects/default/jobs"


class PortalOnRig(PortalProcess):
    """A portal to which the rig's Slurm cluster was added."""

    def __init__(self, port: int, **environment: str) -> None:
        super().__init__(MPORTAL_PORT=str(port), MPORTAL_SKYPILOT="auto", **environment)
        prepare_home(self.home.path / "skypilot" / "home")

    def start(self) -> str:
        """Start it, and wait until SkyPilot's server answers."""
        said = super().start()
        assert eventually(self._has_skypilot, timeout_s=SERVER_START_S), self.logs()
        return said

    def submit(self, **spec: Any) -> int:
        """Submit a job on the rig; its number."""
        with self.client() as client:
            answer = client.post(JOBS, json={"spec": spec})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    def cancel(self, number: int) -> None:
        """Cancel a job."""
        with self.client() as client:
            assert client.post(f"{JOBS}/{number}/actions/cancel").is_success

    def job(self, number: int) -> dict[str, Any]:
        """What the API says of a job."""
        with self.client() as client:
            found: dict[str, Any] = client.get(f"{JOBS}/{number}").json()
        return found

    def log(self, number: int) -> str:
        """A job's whole log as text."""
        with self.client() as client:
            return client.get(f"{JOBS}/{number}/logs/download").text

    def wait_for(self, number: int, *statuses: str, timeout_s: float = JOB_S) -> dict[str, Any]:
        """The job once it stands in one of `statuses`; an end that is none of them fails."""
        wanted = set(statuses) or FINAL
        return self.wait_until(number, lambda job: job["status"] in wanted, timeout_s)

    def wait_until(
        self, number: int, is_so: Callable[[dict[str, Any]], bool], timeout_s: float = JOB_S
    ) -> dict[str, Any]:
        """The job once `is_so`."""
        begin = time.monotonic()
        while not is_so(job := self.job(number)):
            waited = time.monotonic() - begin
            story = (
                f"{job['status']} after {waited:.0f} s: {job}\n{self.log(number)}\n{self.logs()}"
            )
            assert waited < timeout_s, story
            assert job["status"] not in FINAL, story
            time.sleep(0.3)
        return job

    def _has_skypilot(self) -> bool:
        notes = {row["name"]: row["note"] for row in self.status()["processes"]}
        return notes.get("skypilot") == "ready"


@contextmanager
def portal_on(rig: Rig, *, is_reached: bool, **environment: str) -> Iterator[PortalOnRig]:
    """A started portal. `is_reached`: whether the rig's nodes get through to it."""
    port = free_port()
    with ExitStack() as stack:
        if is_reached:
            environment["MPORTAL_NODE_URL"] = stack.enter_context(rig.forward(port))
        portal = PortalOnRig(port, **environment)
        stack.callback(portal.close)
        portal.start()
        yield portal
