"""Jobs while SkyPilot's server does not do what was requested: the plans and the required ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults import stories
from tests.faults.sky.cells import SkyCell
from tests.faults.sky.play import SkyPlay
from tests.faults.stories import Ending, Story
from tests.faults.witness import TO_GO_ON

NO_ROOM = {"type": "ResourcesUnavailableError", "message": "no room", "history": ["full"]}


def fault(do: str, on: str, times: int = 1, **more: Any) -> dict[str, Any]:
    """Build one fault of the plan, see `tests.sky_stub.plan`."""
    return {"do": do, "on": on, "times": times, **more}


@dataclass(frozen=True, slots=True)
class Trouble(SkyCell):
    """A job without a strike, on a server with `faults` and other `keys` of its plan."""

    point: str = "plan.started"
    victim: str = "server"
    strike: str = "FAULT"
    name: str = ""
    faults: tuple[dict[str, Any], ...] = ()
    keys: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] | None = None
    attempts: int = 1
    infra: str = ""  # where it must have landed

    def __str__(self) -> str:
        return self.name

    @property
    def story(self) -> Story:
        """A job that fails in the end, so that its exit code can be checked."""
        return stories.FAILING

    @property
    def ending(self) -> Ending:
        """The end as if nothing had been wrong, perhaps in a later attempt."""
        return replace(self.story.ending, attempts=self.attempts)


class TroubledPlay(SkyPlay):
    """One job in trouble."""

    _sky_cell: Trouble

    def _play(self) -> None:
        ground, trouble = self._sky, self._sky_cell
        ground.make_ready()
        if trouble.is_warm:
            self._leave_a_cluster()
        ground.witness.allow(TO_GO_ON)
        self._jobs_before = ground.count("jobs_job")
        ground.stub.plan(**trouble.keys)
        for number, each in enumerate(trouble.faults):
            ground.stub.strike(**each, name=f"{trouble}-{number}")
        self._job = ground.submit(self._spec()).result()
        self._said = ground.wait_until_final(self._job)

    def _place(self) -> dict[str, Any]:
        place = super()._place()
        chosen = self._sky_cell.resources
        return place if chosen is None else {**place, "resources": chosen}

    def _problems(self) -> list[str]:
        problems = super()._problems()
        happened = {event["fault"] for event in self._sky.stub.witness.events("fault")}
        for number, each in enumerate(self._sky_cell.faults):
            if f"{self._sky_cell}-{number}" not in happened:
                problems.append(f"did not happen: {each}")
        name, _ = self._sky.newest(self._job or 0)
        [*_, begun] = self._sky.stub.witness.events("launch_begun", cluster=name)
        if self._sky_cell.infra not in ("", begun["infra"]):
            problems.append(f"it is on {begun['infra']}")
        return problems
