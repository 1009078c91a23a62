"""The cells of SkyPilot's part of the crash matrix, and what must follow of each.

By default: at every point its holder, by KILL; at some of SkyPilot's own by STOP too; every victim,
by both, at one point that another process holds; all dealt over carriers and over cold and warm
starts; and a cancel in every state. With FULL=1 in the environment: every pair that makes sense.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.faults import stories
from tests.faults.cells import Cell
from tests.faults.sky.points import OF_SERVER
from tests.faults.stories import Ending, Story

OF_PORTAL = ("web", "worker", "beat", "follower")
OF_NODES = ("runner0", "runner1", "node0", "node1", "cluster")
VICTIMS = (*OF_PORTAL, "server", "child", *OF_NODES)
STRIKES = ("KILL", "STOP")
CARRIERS = ("push", "pull")
STARTS = ("cold", "warm")
POINTS = (
    "plan.started",
    "launch.asking",
    "launch.staged",
    "launch.sent",
    "launch.asked",
    "server.provisioning",
    "server.ready",
    "server.submitted",
    "server.executing",
    "launch.stored",
    "runner.started",
    "runner.setup",
    "runner.run",
    "ingest.stored",
    "follow.read",
    "runner.exited",
    "runner.ending",
    "verdict.known",
    "verdict.taken",
    "recover.due",
    "stop.asking",
    "stop.asked",
    "teardown.begun",
    "teardown.asked",
    "server.going_down",
)
# The points that depend most on SkyPilot: their holders are struck by STOP as well.
OWN = frozenset(
    {"launch.sent", "follow.read", "server.provisioning", "server.executing", "server.going_down"}
)
CANCELLED_AT = (
    "plan.started",
    "launch.asking",
    "launch.staged",
    "launch.sent",
    "launch.asked",
    "server.provisioning",
    "server.submitted",
    "launch.stored",
    "runner.started",
    "runner.run",
    "recover.due",
)
_NODES_LIVE = ("runner.started", "runner.run", "ingest.stored", "follow.read", "stop.asking")
_OF_COLD_STARTS = ("server.provisioning", "server.ready", "server.submitted")
# What a warm start leaves: the cluster stays, and another job's end takes it down.
_OF_THE_END = ("teardown.begun", "teardown.asked", "server.going_down")
_STORIES = {
    "recover.due": stories.LOST,
    "stop.asking": stories.CANCELLED,
    "stop.asked": stories.CANCELLED,
}
_FOR_EVER = replace(
    stories.CANCELLED,
    name="for-ever",
    then="",
    lines=(0, 0),
    ending=replace(stories.CANCELLED.ending, exit_codes=(None, 137, 143)),
)


@dataclass(frozen=True, slots=True)
class SkyCell(Cell):
    """A cell: `victim` is struck while a process is held at `point`; a "user" strikes by CANCEL."""

    carrier: str = "push"
    start: str = "cold"

    def __str__(self) -> str:
        return f"{self.point}-{self.victim}-{self.strike}-{self.carrier}-{self.start}"

    @property
    def rank(self) -> int:
        """The rank of the victim's node; 0 if it has none."""
        return int(self.victim[-1]) if self.victim[-1] in "01" else 0

    @property
    def story(self) -> Story:
        """The job: the one that gets to the point, or each kind in turn."""
        if self.strike == "CANCEL":
            # Lost first, where it recovers.
            then = stories.LOST.then if self.point == "recover.due" else ""
            return replace(_FOR_EVER, then=then)
        if self.point in _STORIES:
            return _STORIES[self.point]
        # Two ranks that fail leave open whose failure is the first.
        if self.point.startswith("runner.") or self.victim in OF_NODES:
            return stories.PLAIN
        turn = POINTS.index(self.point) + VICTIMS.index(self.victim)
        return (stories.PLAIN, stories.FAILING)[turn % 2]

    @property
    def ending(self) -> Ending:
        """The required end of the job."""
        ending = self.story.ending
        if self.story is stories.CANCELLED:
            # SkyPilot's own cancel ends what the portal's word did not reach.
            return replace(ending, exit_codes=(None, 137, 143))
        if self.strike != "KILL" or self.victim not in OF_NODES or self._verdict_stands:
            return ending
        return replace(ending, attempts=ending.attempts + 1)

    @property
    def is_warm(self) -> bool:
        """Whether the job starts on a cluster that an earlier one has left."""
        return self.start == "warm"

    @property
    def needs_living_commands(self) -> bool:
        """Whether the commands must wait in the middle of their lines until the strike is over."""
        if self.story.then:
            return True
        return self.victim in OF_NODES and not self.point.startswith("runner.")

    @property
    def waits_for_lines(self) -> bool:
        """Whether the point is to be reached with lines, and not with what comes before them."""
        return self.point in {"ingest.stored", "follow.read"}

    def kills_in_the_middle(self, rank: int) -> bool:
        """Whether the program of `rank` dies after the first half of its lines."""
        dies = self.victim in (f"runner{rank}", f"node{rank}", "cluster")
        return dies and self.strike == "KILL" and self.needs_living_commands

    @property
    def _verdict_stands(self) -> bool:
        """Whether the death of a part of a node comes too late to change the attempt's verdict."""
        # Not the death of a whole node: SkyPilot calls its cluster broken before rank 0, which
        # waits for the other rank's end, has reported its verdict.
        return self.point == "runner.ending" and self.victim == "runner1"


def holder_of(point: str) -> str:
    """Return the process that is held at a point."""
    if point.startswith("runner."):
        return "runner1" if POINTS.index(point) % 2 else "runner0"
    if point == "ingest.stored":
        return "web"
    if point == "follow.read":
        return "follower"
    return "server" if point in OF_SERVER else "worker"


def makes_sense(cell: SkyCell) -> bool:
    """Whether the point is reached in such a job, and the victim is there."""
    if cell.point == ("follow.read" if cell.carrier == "push" else "ingest.stored"):
        return False
    if cell.point in (_OF_COLD_STARTS if cell.is_warm else ("server.executing",)):
        return False
    if cell.is_warm and (cell.point in _OF_THE_END or cell.story.then):
        return False
    if cell.victim in OF_NODES:
        return cell.point in _NODES_LIVE or cell.point.startswith("runner.")
    return cell.victim not in {"web", "follower"} or _is_near(cell)


def _is_near(cell: SkyCell) -> bool:
    """Whether the victim takes part in what happens at the point.

    Web has nothing to do with launches; nor has a follower with frames that are pushed.
    """
    if cell.victim == "follower":
        return cell.carrier == "pull" and cell.point in {*_NODES_LIVE, "verdict.known"}
    return cell.point in {"ingest.stored", "launch.sent", "stop.asking"}


def every_cell() -> Iterator[SkyCell]:
    """Generate all cells that make sense."""
    for carrier in CARRIERS:
        for start in STARTS:
            for point in POINTS:
                for victim in VICTIMS:
                    for strike in STRIKES:
                        cell = SkyCell(point, victim, strike, carrier, start)
                        if makes_sense(cell):
                            yield cell
            yield from _cancels(carrier, start)


def default_cells() -> Iterator[SkyCell]:
    """Generate the holder of each point, the spread of the others, and a cancel in every state."""
    for number, point in enumerate(POINTS):
        holder = holder_of(point)
        for strike in STRIKES if point in OWN else ("KILL",):
            yield from _dealt(number + STRIKES.index(strike), point, holder, strike)
    for victim in VICTIMS:
        for strike in STRIKES:
            yield from _spread(victim, strike)
    for number, point in enumerate(CANCELLED_AT):
        yield from _dealt(number, point, "user", "CANCEL")


def cells_of(carrier: str) -> list[SkyCell]:
    """List the cells of one file of tests, in the order of their points."""
    chosen = every_cell() if os.environ.get("FULL") == "1" else default_cells()
    cells = [cell for cell in dict.fromkeys(chosen) if cell.carrier == carrier]
    return sorted(cells, key=lambda cell: POINTS.index(cell.point))


def _cancels(carrier: str, start: str) -> Iterator[SkyCell]:
    for point in CANCELLED_AT:
        if makes_sense(cell := SkyCell(point, "user", "CANCEL", carrier, start)):
            yield cell


def _dealt(turn: int, point: str, victim: str, strike: str) -> Iterator[SkyCell]:
    """Deal one cell of these, by turns with each carrier and start that makes sense."""
    ways = [
        SkyCell(point, victim, strike, carrier, start) for start in STARTS for carrier in CARRIERS
    ]
    ways = [cell for cell in ways if makes_sense(cell)]
    yield ways[turn % len(ways)]


def _spread(victim: str, strike: str) -> Iterator[SkyCell]:
    """Spread over the points that make sense: one point, another for each victim and strike."""
    points = [
        point
        for point in POINTS
        if holder_of(point) != victim
        and any(
            makes_sense(SkyCell(point, victim, strike, carrier, start))
            for carrier in CARRIERS
            for start in STARTS
        )
    ]
    number = 2 * VICTIMS.index(victim) + STRIKES.index(strike)
    yield from _dealt(number, points[number % len(points)], victim, strike)
