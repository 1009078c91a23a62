"""A program outside of a fleet that is attached to one of its jobs through the front door."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

from websockets.exceptions import WebSocketException

from tests.faults.fleet import JOBS, Fleet
from tests.integration.gateway.ends import Program
from tests.waiting import eventually

SPEC: dict[str, Any] = {
    "name": "attached",
    "resources": {"infra": "local"},
    "portal": {"gateway": True, "meshes": {"trainers": 1}},
}
_ADDRESS = "SELECT address FROM jobs_gatewayhead"


def start_job(fleet: Fleet) -> int:
    """Start a job whose workers wait for programs, and return its id."""
    job_id = fleet.submit("attached", **SPEC)
    is_running = lambda: fleet.job(job_id)["status"] == "RUNNING"  # noqa: E731
    assert eventually(is_running, timeout_s=90), fleet.logs()
    return job_id


def gateway_of_head(fleet: Fleet) -> str:
    """Return the name of the gateway to which the head of the only such job is connected."""
    [(address,)] = fleet.query(_ADDRESS)
    members = fleet.members.items()
    return next(
        name for name, each in members if each.environment.get("MPORTAL_GATEWAY_LISTEN") == address
    )


class Attached:
    """The program: it connects again when its stream has ended."""

    def __init__(self, fleet: Fleet, job_id: int) -> None:
        self._fleet = fleet
        self._path = f"{JOBS}/{job_id}/gateway-sessions"
        with fleet.client() as client:
            answer = client.post(self._path)
        assert answer.status_code == 201, answer.text
        self.session = answer.json()["id"]
        self._secret = answer.json()["ticket"]
        self._program: Program | None = None
        self._generations = itertools.count(1)

    def reaches_worker(self, limit_s: float) -> bool:
        """Whether a new link reaches the worker in time."""
        return eventually(self._tries, timeout_s=limit_s)

    def close(self) -> None:
        """End the session."""
        if self._program is not None:
            self._program.close()
        with self._fleet.client() as client:
            client.delete(f"{self._path}/{self.session}")

    def _tries(self) -> bool:
        try:
            if self._program is None:
                self._program = Program(self._fleet.door.url, self._secret)
                self._secret = self._program.secret
                assert self._program.welcome["session"] == self.session
                self._program.read("mesh")
            return self._program.reaches_worker(next(self._generations))
        except (WebSocketException, OSError):
            with suppress(WebSocketException, OSError):
                if self._program is not None:
                    self._program.close()
            self._program = None
            return False
