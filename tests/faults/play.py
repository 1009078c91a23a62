"""Playing one cell of the crash matrix, and judging what came of it."""

from __future__ import annotations

import re
import signal
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import httpx

from tests.faults import stories, victims
from tests.faults.cells import HELD_BESIDE, Cell
from tests.faults.ground import RANKS, Ground
from tests.faults.stories import HALF
from tests.faults.witness import TO_BEGIN, TO_GO_ON
from tests.waiting import eventually

Row = dict[str, Any]
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")
# What the portal says at the end of a log that may lack something.
_LOSS = re.compile(
    r"\[portal\] The end of rank \d+ in attempt \d+ was not heard: "
    r"(its last lines|messages after its number (?P<after>\d+)) may be missing\.$"
)


class Play:
    """One job, struck once. `run` breaks it; `problems` lists what went wrong."""

    def __init__(self, ground: Ground, cell: Cell) -> None:
        self._ground = ground
        self._cell = cell
        self._job: int | None = None
        self._lines_before: list[Row] = []
        self._said: Row = {}
        self._web: list[int] = []
        self._jobs_before = 0

    def run(self) -> list[str]:
        """Submit, wait for the point, strike, release, wait for the end; return the problems."""
        try:
            self._play()
            problems = self._problems()
        except Exception as error:
            raise AssertionError(self.report()) from error
        finally:
            self._ground.points.let_go()
            self._ground.witness.doubles.clear()
        return problems

    def report(self) -> str:
        """Collect what is needed to understand a failure."""
        return f"{self._cell} ({self._cell.story.name})\n{self._ground.report(self._job)}"

    def _spec(self) -> Row:
        return self._cell.story.spec(self._ground.witness.port)

    def _play(self) -> None:
        ground, cell = self._ground, self._cell
        ground.make_ready()
        until_strike = TO_BEGIN if cell.needs_living_commands else TO_GO_ON
        ground.witness.allow(0 if cell.waits_for_lines else until_strike)
        self._wait_for_sealed_logs()
        self._jobs_before = ground.count("jobs_job")
        if cell.point != "runner.verdict" and not cell.waits_for_lines:
            ground.points.hold(cell.point, cell.rank)
        for point in HELD_BESIDE.get(cell.point, ()):
            ground.points.hold(point)
        submission = ground.submit(self._spec())
        request = self._lead_to_the_point(submission)
        self._strike(submission)
        ground.witness.allow(TO_GO_ON)
        self._job = submission.result()
        if request is not None:
            request.result()
        self._said = ground.wait_until_final(self._job)

    def _problems(self) -> list[str]:
        assert self._job is not None
        job, ground = self._job, self._ground
        left: list[str] = []
        made = ground.count("jobs_job") - self._jobs_before

        def is_clean() -> bool:
            left[:] = ground.remains(job)
            return not left

        eventually(is_clean, timeout_s=ground.gone_in_s)
        if made != 1:
            left.append(f"{made} jobs came of one submission")
        return [*left, *ground.witness.doubles, *self._wrong_ending(), *self._wrong_lines()]

    def _wait_for_sealed_logs(self) -> None:
        """Wait until no log other than this job's can get to the point where a log is sealed."""
        if self._cell.point == "seal.written":
            assert eventually(lambda: self._ground.count("jobs_logblock") == 0, timeout_s=40)

    def _lead_to_the_point(self, submission: Future[int]) -> Future[bool] | None:
        """Do what the story needs until a process is held at the point."""
        ground, cell = self._ground, self._cell
        request = None
        if cell.story.then == "cancel":
            ground.witness.wait_for(submission.result(), len(RANKS))
            request = ground.cancel(submission.result())
        elif cell.story.then == stories.LOST.then:
            ground.witness.wait_for(submission.result(), len(RANKS))
            victims.kill(victims.runner_on(ground.node(submission.result(), 0)))
        if cell.waits_for_lines:
            assert eventually(lambda: self._run_everywhere(submission.result()), timeout_s=40)
            ground.points.hold(cell.point)
            ground.witness.allow(TO_BEGIN if cell.needs_living_commands else TO_GO_ON)
        if cell.point == "runner.verdict":
            self._keep_the_verdict_from_the_portal()
        ground.points.wait_for(cell.point, cell.rank)
        return request

    def _run_everywhere(self, job: int) -> bool:
        """Whether the portal knows that the commands run: lines are what comes next."""
        attempts = self._ground.get(f"{job}/attempts")["results"]
        workers = attempts[0]["workers"] if attempts else []
        living = len(self._ground.witness.living(job))
        is_monarch = self._cell.story.is_monarch
        return living == (1 if is_monarch else len(RANKS)) and [
            worker["status"] for worker in workers
        ] == ["RUNNING"] * len(RANKS)

    def _keep_the_verdict_from_the_portal(self) -> None:
        """Keep the verdict from the portal.

        The carrier is a thread of its own: while the web process lives, it would deliver.
        """
        points = self._ground.points
        points.hold("runner.ending")
        points.wait_for("runner.ending")
        self._web = victims.part_of(self._ground.portal, "web")
        victims.send(self._web, signal.SIGSTOP)
        points.let_go()
        points.hold("runner.verdict")

    def _strike(self, submission: Future[int]) -> None:
        cell = self._cell
        job = None if cell.point.startswith("submit.") else submission.result()
        self._lines_before = self._read_lines(job)
        try:
            self._hit(job)
        finally:
            if cell.point == "runner.verdict":
                victims.send(self._web, signal.SIGCONT)

    def _hit(self, job: int | None) -> None:
        """Kill or stop the victim, and let the process that is held at the point continue."""
        ground, cell = self._ground, self._cell
        pids = ground.pids_of(cell, job)
        assert pids, "the victim is not there"
        if cell.strike == "KILL":
            before = len(ground.witness.living(job or 0))
            victims.kill(pids)
            ground.note_death(cell.victim)
            ground.points.let_go()
            if cell.victim.startswith("guardian") and cell.needs_living_commands:
                # The runner hears of it by a signal; commands that may go on before it does would
                # end as if nothing had happened.
                eventually(lambda: len(ground.witness.living(job or 0)) < before, timeout_s=10)
        else:
            with victims.stopped(pids):
                ground.points.let_go()

    def _read_lines(self, job: int | None) -> list[Row]:
        """Read the lines that were acknowledged before: they must stay.

        A portal that can't answer is not queried.
        """
        if job is None or self._cell.point.startswith("runner.verdict"):
            return []
        with suppress(httpx.HTTPError):
            return self._ground.lines(job)
        return []

    def _wrong_ending(self) -> list[str]:
        ending, final, ground = self._cell.ending, self._said, self._ground
        attempts = ground.get(f"{self._job}/attempts")["results"]
        events = ground.get(f"{self._job}/events", limit=200)["results"]
        finals = [event for event in events if event["new_status"] in FINAL]
        workers = [worker["exit_code"] for worker in attempts[0]["workers"]]
        looks = {
            "status": (final["status"], ending.status),
            "reason": (final["stop_reason"], ending.reason),
            "attempts": (len(attempts), ending.attempts),
            "open attempts": (sum(each["ended_at"] is None for each in attempts), 0),
            "final events": (len(finals), 1),
            "last event": (events_of_status(events)[-1]["new_status"], ending.status),
            "exit codes": (workers[: len(ending.workers)], list(ending.workers)),
        }
        wrong = [f"{name}: {is_}, not {must}" for name, (is_, must) in looks.items() if is_ != must]
        if final["exit_code"] not in ending.exit_codes:
            wrong.append(f"exit code: {final['exit_code']}, not one of {ending.exit_codes}")
        return wrong

    def _wrong_lines(self) -> list[str]:
        lines = self._ground.lines(self._job or 0)
        wrong = []
        if lines[: len(self._lines_before)] != self._lines_before:
            wrong.append("lines that were there before are there no more, or have changed")
        last = max((line["attempt"] for line in lines), default=0)
        for attempt in range(1, last + 1):
            for rank in RANKS:
                wrong += self._wrong_numbers(lines, attempt, rank, is_last=attempt == last)
        wrong += self._hidden_losses(lines)
        cursors = [(line["attempt"], line["line"]) for line in lines]
        if cursors != sorted(set(cursors)):
            wrong.append(f"lines are doubled or out of order: {cursors}")
        return wrong

    def _wrong_numbers(
        self, lines: list[Row], attempt: int, rank: int, *, is_last: bool
    ) -> list[str]:
        numbers = self._ground.numbers(lines, attempt, rank)
        what = f"attempt {attempt}, rank {rank}"
        if numbers != list(range(1, len(numbers) + 1)):
            return [f"{what}: lines {numbers}"]
        wanted = self._cell.story.lines[rank] if is_last else 0
        if self._cell.ending.exit_codes[-1] == 137:
            wanted = min(HALF, wanted) if rank == 0 else 0
        return [] if len(numbers) >= wanted else [f"{what}: {len(numbers)} lines, not {wanted}"]

    def _hidden_losses(self, lines: list[Row]) -> list[str]:
        """List the losses that a log of a lost attempt hides.

        A reader must see what may be missing, and from where.
        """
        wrong = []
        for attempt in self._ground.get(f"{self._job}/attempts")["results"]:
            mine = [line for line in lines if line["attempt"] == attempt["number"]]
            if mine and attempt["stop_reason"] == "WORKER_LOST":
                workers = {worker["rank"]: worker for worker in attempt["workers"]}
                for rank in RANKS:
                    wrong += self._hidden_loss(mine, attempt["number"], rank, workers.get(rank))
        return wrong

    def _hidden_loss(
        self, lines: list[Row], attempt: int, rank: int, worker: Row | None
    ) -> list[str]:
        count = len(self._ground.numbers(lines, attempt, rank))
        what, printed = f"attempt {attempt}, rank {rank}", self._cell.story.lines[rank]
        if worker and worker["exit_code"] == 0 and count < printed:
            return [f"{what}: has ended, and {count} of {printed} lines are there"]
        losses = [
            found
            for line in lines
            if line["stream"] == "portal" and line["rank"] == rank
            if (found := _LOSS.match(line["text"]))
        ]
        # One that rank 0 has ended, because another was lost, has no exit code and loses nothing.
        is_lost = worker is None or worker["status"] == "LOST"
        if is_lost and len(losses) != 1:
            return [f"{what}: its end is not known, and the log reports it {len(losses)} times"]
        # A message is a line or a report: there are at least as many.
        if any(found["after"] and int(found["after"]) < count for found in losses):
            return [f"{what}: {count} lines are there, and the log reports fewer"]
        if self._cell.kills_in_the_middle(rank) and attempt == 1 and count > HALF:
            return [f"{what}: {count} lines of a program that was killed after {HALF}"]
        return []


def events_of_status(events: list[Row]) -> list[Row]:
    """List the events that report a move."""
    return [event for event in events if event["new_status"]]
