"""A portal in memory that follows the model, one move of each job a look: for tests of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from jobs.statuses import FINAL_STATUSES, JobStatus
from tests.faults.model import model
from tests.faults.model.driver import Reply
from tests.faults.model.model import World, onward
from tests.faults.model.programs import LINES, PROGRAMS, Program

Row = dict[str, Any]
_CREATED, _CODES = 201, {404: "not_found"}
_VERBS_THAT_SHOW = {"cancel", "hold", "release"}


@dataclass
class Pretended:
    """One job of the pretended portal."""

    id: int
    program: Program
    text: str
    rerun_of: int | None
    world: World
    events: list[Row] = field(default_factory=list)

    def go_to(self, world: World) -> None:
        """Switch to another world, and note the change of status."""
        if world.status != self.world.status:
            started = world.attempt or None
            self._note("status", self.world.status, world.status, started)
        self.world = world

    def note_birth(self) -> None:
        """Note the first event."""
        self._note("action", "", "", None, verb="rerun" if self.rerun_of else "submit")

    def _note(self, kind: str, old: str, new: str, attempt: int | None, *, verb: str = "") -> None:
        row = {"id": len(self.events) + 1, "kind": kind, "verb": verb, "attempt": attempt}
        self.events.append({**row, "old_status": old, "new_status": new})


class PretendedPortal:
    """A portal without faults in memory; a class above it plants faults."""

    is_armed = False

    def __init__(self) -> None:
        self._jobs: list[Pretended] = []
        self._keys: dict[str, Pretended] = {}
        self._lock = threading.RLock()  # requests come two at a time

    def submit(self, text: str, key: str) -> Reply:
        spec = yaml.safe_load(text)
        if "runn" in spec:
            return Reply(422, "invalid_spec", {})
        with self._lock:
            if (job := self._keys.get(key)) is None:
                job = self._keys[key] = self._made(text, spec)
        if job.text != text:
            return Reply(422, "idempotency_conflict", {})
        return Reply(_CREATED, "", row_of(job))

    def act(self, verb: str, job_id: int) -> Reply:
        with self._lock:
            return self._acted(verb, job_id)

    def _acted(self, verb: str, job_id: int) -> Reply:
        job = self.job(job_id)
        if job is None:
            return Reply(*model.NOT_FOUND, {})
        (status, code), world = model.respond(job.world, verb)
        job.go_to(world)
        if verb == "rerun":
            again = self._made(job.text, {"name": "again"}, of=job)
            return Reply(status, code, row_of(again))
        return Reply(status, code, row_of(job) if verb in _VERBS_THAT_SHOW else None)

    def jobs(self) -> Reply:
        for job in self._present():
            job.go_to(next(onward(job.world, job.program), job.world))
        return Reply(200, "", {"results": [row_of(job) for job in self._present()]})

    def read(self, job_id: int, what: str = "") -> Reply:
        self.jobs()
        job = self.job(job_id)
        if job is None:
            return Reply(*model.NOT_FOUND, {})
        if not what:
            return Reply(200, "", row_of(job))
        return Reply(200, "", {"results": _rows_of(job, what)})

    def harm(self, how: str, part: str, moment: str) -> None:
        """Do nothing: there is nothing to harm."""

    def fire(self) -> None: ...

    def mend(self) -> None: ...

    def clean(self) -> bool:
        self._jobs.clear()
        return True

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        return any(condition() for _ in range(50))

    def remains(self) -> list[str]:
        return []

    def report(self) -> str:
        return "nothing but what the model says"

    def job(self, job_id: int) -> Pretended | None:
        """Return the job of that id, unless it is deleted."""
        return next((job for job in self._present() if job.id == job_id), None)

    def _present(self) -> list[Pretended]:
        return [job for job in self._jobs if not job.world.deleted]

    def _made(self, text: str, spec: Row, of: Pretended | None = None) -> Pretended:
        program = replace(of.program, held=False) if of else _program_of(spec)
        (world,) = model.submitted(program)
        job = Pretended(len(self._jobs) + 1, program, text, of and of.id, world)
        job.note_birth()
        self._jobs.append(job)
        return job


def row_of(job: Pretended) -> Row:
    """Build the job as REST shows it."""
    world, ending = job.world, job.program.ending
    is_queued, is_final = world.status == JobStatus.QUEUED, world.status in FINAL_STATUSES
    cancelled = world.status == JobStatus.CANCELLED
    by_itself = is_final and not cancelled and ending
    return {
        "id": job.id,
        "status": world.status.value,
        "attempt": world.attempt or None,
        "attempt_count": world.attempt,
        "is_final": is_final,
        "ended_at": "now" if is_final else None,
        "can_cancel": not is_final and world.status != JobStatus.STOPPING,
        "can_hold": is_queued and not world.held,
        "can_release": world.held,
        "can_delete": is_final,
        "num_nodes": job.program.nodes,
        "rerun_of": job.rerun_of,
        "wait_reason": "HELD" if world.held else "",
        "stop_reason": "CANCELLED_BY_USER" if cancelled else ending.reason if by_itself else "",
        "exit_code": ending.exit_code if by_itself else None,
    }


def _rows_of(job: Pretended, what: str) -> list[Row]:
    numbers = range(1, job.world.attempt + 1)
    if what == "events":
        return job.events
    if what == "attempts":
        return [{"number": number, "cluster_name": ""} for number in reversed(numbers)]
    places = [(number, rank) for number in numbers for rank in range(job.program.nodes)]
    has_run = job.world.status in {JobStatus.SUCCEEDED, JobStatus.FAILED}
    return [
        {"attempt": number, "rank": rank, "stream": "stdout", "text": f"line {line}"}
        for number, rank in places
        for line in range(1, LINES + 1)
        if has_run
    ]


def _program_of(spec: Row) -> Program:
    known = (p for p in PROGRAMS.values() if yaml.safe_load(p.text(spec["name"])) == spec)
    return next(known)
