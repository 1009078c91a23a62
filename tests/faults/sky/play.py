"""Playing one cell on SkyPilot's machines."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from tests.faults.play import Play
from tests.faults.sky.cells import SkyCell
from tests.faults.sky.ground import RESOURCES, SkyGround
from tests.faults.stories import PLAIN
from tests.faults.witness import TO_GO_ON

IDLE = {"minutes": 30, "then": "down"}


class SkyPlay(Play):
    """One job, struck once."""

    def __init__(self, ground: SkyGround, cell: SkyCell) -> None:
        super().__init__(ground, cell)
        self._sky, self._sky_cell = ground, cell
        self._cancel: Future[bool] | None = None

    def _play(self) -> None:
        self._sky.make_ready()
        if self._sky_cell.is_warm:
            self._leave_a_cluster()
        super()._play()
        if self._cancel is not None:
            self._cancel.result()

    def _leave_a_cluster(self) -> None:
        """Run a job whose machines stay up for this one."""
        ground = self._sky
        ground.witness.allow(TO_GO_ON)
        spec = {**PLAIN.spec(ground.witness.port), **self._place()}
        before = ground.wait_until_final(ground.submit(spec).result())
        assert before["status"] == "SUCCEEDED", before

    def _spec(self) -> dict[str, Any]:
        return {**super()._spec(), **self._place()}

    def _place(self) -> dict[str, Any]:
        portal = {"portal": {"reuse": True, "idle": IDLE}} if self._sky_cell.is_warm else {}
        return {"resources": RESOURCES, **portal}

    def _hit(self, job: int | None) -> None:
        ground, cell = self._sky, self._sky_cell
        if cell.strike == "CANCEL":
            assert job is not None
            self._cancel = ground.cancel(job)
            self._cancel.result()
            ground.points.let_go()
        elif cell.strike == "KILL" and cell.victim in {"node0", "node1", "cluster"}:
            name, _ = ground.newest(job or 0)
            if cell.victim == "cluster":
                ground.stub.cloud.preempt(name)
            else:
                ground.stub.cloud.kill_node(name, cell.rank)
            ground.points.let_go()
        elif cell.strike == "KILL" and cell.victim == "server":
            ground.stub.kill()
            ground.points.let_go()
            ground.stub.start()
        else:
            super()._hit(job)

    def _problems(self) -> list[str]:
        if self._sky_cell.is_warm:
            self._sky.release_kept()
        return super()._problems()
