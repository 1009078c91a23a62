"""One job of a walk, and the worlds it may be in by what has been answered and seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jobs.statuses import JobStatus
from tests.faults.model import model
from tests.faults.model.driver import Reply, ViolationError
from tests.faults.model.history import faults_of, walked
from tests.faults.model.model import Worlds
from tests.faults.model.programs import LINES, Program

Row = dict[str, Any]


@dataclass
class Known:
    """The knowledge that a walk has of a job it submitted."""

    name: str
    program: Program
    id: int
    key: str
    worlds: Worlds
    reported: list[str] = field(default_factory=list)  # what narrowed the worlds, for a violation
    clusters: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        """The specification it was submitted with."""
        return self.program.text(self.name)

    @property
    def is_deleted(self) -> bool:
        """Whether it is certain that the job was deleted."""
        return all(world.deleted for world in self.worlds)

    @property
    def is_final(self) -> bool:
        """Whether it is certain that it has ended."""
        return all(world.is_final or world.deleted for world in self.worlds)

    def take_answer(self, verb: str, reply: Reply) -> None:
        """Learn from what a request was answered."""
        lost = (verb,) if reply.repeated else ()
        left = model.answered(self.worlds, self.program, verb, reply.answer, lost=lost)
        self._narrow(left, f"{verb} was answered {reply.answer}", lost)

    def take_answers(self, verbs: tuple[str, str], replies: tuple[Reply, Reply]) -> None:
        """Learn from two requests sent at once: one of the two orders must explain them."""
        pairs = list(zip(verbs, replies, strict=True))
        lost = tuple(verb for verb, reply in pairs if reply.repeated)
        left: set[model.World] = set()
        for order in (pairs, pairs[::-1]):
            worlds = self.worlds
            for verb, reply in order:
                worlds = model.answered(worlds, self.program, verb, reply.answer, lost=lost)
            left |= worlds
        summary = " and ".join(f"{verb} was answered {reply.answer}" for verb, reply in pairs)
        self._narrow(frozenset(left), f"at once {summary}", lost)

    def take_look(self, job: Row | None) -> None:
        """Learn from how REST shows the job; None if it does not."""
        left = model.looked(self.worlds, self.program, job)
        self._narrow(left, f"seen as {_in_short(job)}")

    def take_history(self, events: list[Row]) -> None:
        """Learn from the events, which must be a legal walk."""
        if faults := faults_of(events):
            raise ViolationError(f"{self.name}: {'; '.join(faults)}\n{self._story()}")
        status = walked(events)[-1]
        left = {w for w in model.reachable(self.worlds, self.program) if w.status == status}
        self._narrow(frozenset(left), f"its events end with {status}")

    def take_attempts(self, attempts: list[Row]) -> None:
        """Learn from the attempts, newest first."""
        self.clusters |= {row["cluster_name"] for row in attempts}
        numbers = [row["number"] for row in reversed(attempts)]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ViolationError(f"{self.name}: attempts {numbers}\n{self._story()}")
        left = {w for w in model.reachable(self.worlds, self.program) if w.attempt == len(numbers)}
        self._narrow(frozenset(left), f"{len(numbers)} attempts")

    def check_lines(self, lines: list[Row], *, was_final: bool) -> None:
        """Check that each line is there once and in order.

        All of them must be there if the job had ended by itself before.
        """
        whole = [f"line {number}" for number in range(1, LINES + 1)]
        by_itself = {w.status for w in self.worlds} <= {JobStatus.SUCCEEDED, JobStatus.FAILED}
        attempts = max(world.attempt for world in self.worlds)
        for attempt in range(1, attempts + 1):
            for rank in range(self.program.nodes):
                place = (attempt, rank)
                got = [row["text"] for row in lines if (row["attempt"], row["rank"]) == place]
                if got != (whole if by_itself and was_final else whole[: len(got)]):
                    summary = f"{self.name}: attempt {attempt}, rank {rank} has lines {got}"
                    raise ViolationError(f"{summary}\n{self._story()}")

    def _narrow(self, left: Worlds, how: str, lost: tuple[str, ...] = ()) -> None:
        self.reported.append(how + (f" (an earlier answer to {lost[0]} was lost)" if lost else ""))
        if not left:
            before = model.reachable(self.worlds, self.program, *lost)
            could = "\n".join(sorted(f"  {world}" for world in before))
            raise ViolationError(f"{self.name} cannot be so. It could be\n{could}\n{self._story()}")
        self.worlds = left

    def _story(self) -> str:
        return "\n".join([f"Of {self.name} ({self.program.name}, job {self.id}):", *self.reported])


def _in_short(job: Row | None) -> str:
    if job is None:
        return "absent"
    names = ("status", "attempt", "attempt_count", "wait_reason", "stop_reason", "exit_code")
    return ", ".join(f"{name} {job[name]}" for name in names if job[name] not in (None, ""))
