"""The cells of the crash matrix: a point, a victim, a strike, and what must follow.

The default set: at every point the process that is held there, by KILL and by STOP; and every other
victim, by KILL and by STOP, at some points of its own, dealt so that they spread over all phases.
With FULL=1 in the environment: every pair that makes sense.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.faults import stories
from tests.faults.stories import Ending, Story
from tests.faults.victims import PORTAL_PARTS

# The phases are a file of tests each: they run side by side.
PHASES = {
    "start": (
        "submit.stored",
        "submit.committed",
        "plan.decided",
        "plan.started",
        "launch.asking",
        "launch.laid_out",
        "launch.asked",
        "launch.stored",
    ),
    "run": (
        "runner.started",
        "runner.setup",
        "runner.workers",
        "runner.run",
        "ingest.stored",
        "ingest.committed",
        "runner.exited",
    ),
    "end": (
        "runner.ending",
        "runner.verdict",
        "verdict.known",
        "verdict.taken",
        "recover.due",
        "seal.written",
    ),
    "stop": (
        "cancel.committed",
        "stop.asking",
        "stop.asked",
        "teardown.begun",
        "teardown.asked",
    ),
}
# Reached by the follower, which carries no frames of local jobs, and by SkyPilot's launches. An
# answer that orders a stop is lost as one at "ingest.committed" is. Other points are tested
# elsewhere: clusters that outlive their jobs in tests/faults/test_kept_clusters.py, spent budgets
# in tests/faults/test_budgets.py, logs that an administrator moves in
# tests/integration/logs/test_moving.py, schedules in tests/faults/test_schedules.py, jobs that
# depend on others in tests/faults/test_dependencies.py, and preemption in
# tests/faults/test_preemption.py.
OF_DEPENDENCIES = ("dependency.settled",)
OF_KEPT_CLUSTERS = ("cluster.taken", "cluster.kept", "autostop.begun", "autostop.asked")
OF_BUDGETS = ("budget.noted", "budget.stopped")
OF_PREEMPTION = ("preempt.stopped", "preempt.queued")
OF_MOVES = ("move.copied", "move.switched")
OF_SCHEDULES = ("schedule.due", "schedule.stored")
ELSEWHERE = frozenset(
    {
        *("follow.read", "launch.staged", "launch.sent", "stop.answering"),
        *(*OF_KEPT_CLUSTERS, *OF_BUDGETS, *OF_DEPENDENCIES, *OF_MOVES),
        *(*OF_PREEMPTION, *OF_SCHEDULES),
    }
)
# The processes that must be stopped too, so that they do not end the victim first: the tick finds
# a cancelled job without a hint, and its runner learns of it from the answer to its next push.
HELD_BESIDE = {
    "cancel.committed": ("stop.asking", "stop.answering"),
    "stop.asking": ("stop.answering",),
    "stop.asked": ("stop.answering",),
}
POINTS = tuple(point for points in PHASES.values() for point in points)
STRIKES = ("KILL", "STOP")
NODE_PARTS = ("runner0", "runner1", "guardian0", "guardian1", "host0", "host1")
VICTIMS = (*PORTAL_PARTS, *NODE_PARTS, "driver")
# Only the disk of the first host holds the verdict.
ALSO = (("runner.verdict", "host0", "KILL"),)
# At how many points each victim is struck by default, beside those that it holds itself.
SPREAD = 3
# A lost host is noticed after 12 or 15 seconds.
SPREAD_OF_HOSTS = 2

_OF_WEB = ("submit.", "ingest.", "cancel.")
_NODES_LIVE = ("ingest.stored", "ingest.committed", "cancel.committed", "stop.asking")
_COMMANDS_LIVE = (*_NODES_LIVE, "launch.asked", "launch.stored")
_RANK_0_ONLY = ("runner.verdict",)
# There is no guardian yet, or its death and the command's end are a race that either may win.
_RUNNER_ALONE = ("runner.started", "runner.exited")
_STORIES = {
    "cancel.committed": stories.CANCELLED,
    "stop.asking": stories.CANCELLED,
    "stop.asked": stories.CANCELLED,
    "recover.due": stories.LOST,
    "seal.written": stories.LONG,
    "runner.workers": stories.MONARCH,
}
_ROTATION = (stories.PLAIN, stories.FAILING, stories.MONARCH)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: `victim` is struck by `strike` while a process is held at `point`."""

    point: str
    victim: str
    strike: str

    def __str__(self) -> str:
        return f"{self.point}-{self.victim}-{self.strike}"

    @property
    def rank(self) -> int:
        """The rank of the victim's node; 0 if it has none."""
        return int(self.victim[-1]) if self.victim in NODE_PARTS else 0

    @property
    def story(self) -> Story:
        """The job: the one that gets to the point, or each kind in turn."""
        if self.point in _STORIES:
            return _STORIES[self.point]
        # Two ranks that fail leave open whose failure is the first; rank 1 runs a Monarch worker.
        if self.victim == "driver" or (self.point.startswith("runner.") and self.rank == 1):
            return stories.PLAIN
        turn = POINTS.index(self.point) + VICTIMS.index(self.victim)
        return _ROTATION[(turn + STRIKES.index(self.strike)) % len(_ROTATION)]

    @property
    def ending(self) -> Ending:
        """The required end of the job."""
        ending = self.story.ending
        if self.strike == "STOP" or self.victim in PORTAL_PARTS:
            return ending
        if self.story is stories.CANCELLED:
            return replace(ending, exit_codes=(None, 137))
        if self.victim == "driver":
            return Ending("FAILED", "USER_CODE", (137,), (137,))
        if self._verdict_stands:
            return ending
        return replace(ending, attempts=ending.attempts + 1)

    @property
    def needs_living_commands(self) -> bool:
        """Whether the commands must wait in the middle of their lines until the strike is over."""
        if self.story.then or self.victim == "driver":
            return True
        # A runner that is held at a point keeps its commands from going on by itself.
        return self.victim in NODE_PARTS and not self.point.startswith("runner.")

    @property
    def waits_for_lines(self) -> bool:
        """Whether the point is to be reached with lines, and not with what comes before them."""
        return self.point.startswith("ingest.")

    def kills_in_the_middle(self, rank: int) -> bool:
        """Whether the program of `rank` dies after the first half of its lines."""
        dies = self.strike == "KILL" and self.victim in (f"runner{rank}", f"host{rank}")
        return dies and self.needs_living_commands

    @property
    def _verdict_stands(self) -> bool:
        """Whether the death of a part of a node comes too late to change the attempt's verdict."""
        if self.point == "runner.ending":
            # Without its guardian a runner ends what it has begun.
            return self.rank == 1 or self.victim.startswith("guardian")
        return self.point == "runner.verdict"


def holder_of(point: str) -> str:
    """Return the process that is held at a point."""
    if point.startswith("runner."):
        return "runner1" if POINTS.index(point) % 2 and point not in _RANK_0_ONLY else "runner0"
    return "web" if point.startswith(_OF_WEB) else "worker"


def makes_sense(cell: Cell) -> bool:
    """Whether the victim exists at the point, and striking it tests something."""
    if cell.victim in PORTAL_PARTS:
        return True
    if cell.victim == "driver":
        return cell.point in _COMMANDS_LIVE
    if cell.victim.startswith("guardian") and cell.point in _RUNNER_ALONE:
        return False
    is_there = cell.point in _NODES_LIVE or cell.point.startswith("runner.")
    return is_there and not (cell.point in _RANK_0_ONLY and cell.rank == 1)


def every_cell() -> Iterator[Cell]:
    """Generate all pairs that make sense."""
    for point in POINTS:
        for victim in VICTIMS:
            for strike in STRIKES:
                if makes_sense(cell := Cell(point, victim, strike)):
                    yield cell


def default_cells() -> Iterator[Cell]:
    """Generate the holder of each point, and the spread of the other victims."""
    for point in POINTS:
        yield from (Cell(point, holder_of(point), strike) for strike in STRIKES)
    for victim in VICTIMS:
        for strike in STRIKES:
            yield from _spread(victim, strike)
    yield from (Cell(*names) for names in ALSO)


def _spread(victim: str, strike: str) -> Iterator[Cell]:
    """Spread cells evenly over the points that make sense.

    Each victim and strike begins at another point.
    """
    cells = [Cell(point, victim, strike) for point in POINTS if holder_of(point) != victim]
    cells = [cell for cell in cells if makes_sense(cell)]
    wanted = min(SPREAD_OF_HOSTS if victim.startswith("host") else SPREAD, len(cells))
    first = 2 * VICTIMS.index(victim) + STRIKES.index(strike)
    for turn in range(wanted):
        yield cells[(first + turn * len(cells) // wanted) % len(cells)]


def cells_of(phase: str) -> list[Cell]:
    """List the cells of one file of tests, in the order of their points."""
    chosen = every_cell() if os.environ.get("FULL") == "1" else default_cells()
    cells = [cell for cell in dict.fromkeys(chosen) if cell.point in PHASES[phase]]
    return sorted(cells, key=lambda cell: PHASES[phase].index(cell.point))
