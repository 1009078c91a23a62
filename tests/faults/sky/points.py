"""Held points, with those of SkyPilot's server among them."""

from __future__ import annotations

from pathlib import Path

from tests.faults.held_points import HeldPoints
from tests.sky_stub.process import StubProcess
from tests.sky_stub.verbs import HELD

# Moments of the server, by what the stand-in calls them.
OF_SERVER = {
    "server.provisioning": "launch.provisioning",
    "server.ready": "launch.up",
    "server.submitted": "launch.submitted",
    "server.executing": "exec.submitted",
    "server.going_down": "down.begun",
}


class SkyPoints(HeldPoints):
    """Points of the portal's and the runners' processes, and of a stand-in for SkyPilot's."""

    def __init__(self, directory: Path, stub: StubProcess) -> None:
        super().__init__(directory)
        self._stub = stub

    def hold(self, point: str, rank: int = 0) -> None:
        """Hold the next process that reaches the point."""
        if point in OF_SERVER:
            self._stub.strike("hold", OF_SERVER[point])
        else:
            super().hold(point, rank)

    def holder(self, point: str, rank: int = 0) -> int | None:
        """Return the process that is held at the point; None if there is none."""
        if point not in OF_SERVER:
            return super().holder(point, rank)
        return self._stub.pid if (self._held / OF_SERVER[point]).exists() else None

    def let_go(self) -> None:
        """Hold nothing any more; processes that are held anywhere continue."""
        super().let_go()
        self._stub.plan(faults=[])
        if self._held.is_dir():
            for file in self._held.iterdir():
                file.unlink(missing_ok=True)

    @property
    def _held(self) -> Path:
        return self._stub.state / HELD
