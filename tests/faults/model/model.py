"""The life cycle by its documentation alone: the possible worlds of a job, and their answers.

What happens by itself happens at an unknown moment, so that the model keeps a set of worlds: an
answer or a look narrows it, time widens it, and a portal that leaves it empty is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from jobs.statuses import FINAL_STATUSES, JobStatus, WaitReason
from tests.faults.model.programs import Program

# Where it goes on whatever the program does.
_NEXT = {
    JobStatus.PROVISIONING: JobStatus.SETTING_UP,
    JobStatus.SETTING_UP: JobStatus.RUNNING,
    JobStatus.STOPPING: JobStatus.CANCELLED,
}
Answer = tuple[int, str]  # HTTP status and the problem's code, empty for a success
NOT_FOUND = (404, "not_found")
ENDED = (409, "job_already_final")
CONFLICT = (409, "conflict")


@dataclass(frozen=True, slots=True)
class World:
    """One possible state of a job."""

    status: JobStatus = JobStatus.QUEUED
    attempt: int = 0
    held: bool = False
    machines: bool = False  # something of an attempt is still there
    deleted: bool = False

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self.status in FINAL_STATUSES

    def __str__(self) -> str:
        marks = [name for name in ("held", "machines", "deleted") if getattr(self, name)]
        return " ".join([self.status.value, f"attempt {self.attempt}", *marks])


Worlds = frozenset[World]


def submitted(program: Program) -> Worlds:
    """Return what is known of a job whose submission was accepted."""
    return frozenset({World(held=program.held)})


def onward(world: World, program: Program) -> Iterator[World]:
    """Generate the worlds to which the portal may move a job next, by itself."""
    if world.deleted:
        return
    if world.status == JobStatus.QUEUED and not world.held:
        yield _started(world)
    elif world.status == JobStatus.RUNNING and program.ending:
        again = world.attempt < program.attempts
        yield replace(world, status=JobStatus.RECOVERING if again else program.ending.status)
    elif world.status == JobStatus.RECOVERING and not world.machines:
        yield _started(world)
    elif world.status in _NEXT:
        yield replace(world, status=_NEXT[world.status])
    if world.machines and (world.is_final or world.status == JobStatus.RECOVERING):
        yield replace(world, machines=False)


def respond(world: World, verb: str) -> tuple[Answer, World]:
    """Return the required answer to a request, and the world that follows."""
    return (NOT_FOUND, world) if world.deleted else _RESPONSES[verb](world)


def reachable(worlds: Worlds, program: Program, *verbs: str) -> Worlds:
    """Extend the worlds by all that may have been reached meanwhile.

    With `verbs`: requests whose outcome is unknown, each carried out any number of times.
    """
    found, fresh = set(worlds), list(worlds)
    while fresh:
        world = fresh.pop()
        following = {*onward(world, program), *(respond(world, verb)[1] for verb in verbs)}
        fresh.extend(following - found)
        found |= following
    return frozenset(found)


def answered(
    worlds: Worlds, program: Program, verb: str, answer: Answer, *, lost: Iterable[str] = ()
) -> Worlds:
    """Restrict the worlds by an answer. `lost`: requests to which earlier answers were lost."""
    before = reachable(worlds, program, *lost)
    outcomes = (respond(world, verb) for world in before)
    return frozenset(world for given, world in outcomes if given == answer)


def looked(worlds: Worlds, program: Program, job: dict[str, Any] | None) -> Worlds:
    """Restrict the worlds by a job as it was read; None if there is no such job."""
    return frozenset(
        world for world in reachable(worlds, program) if not differences(world, program, job)
    )


def differences(world: World, program: Program, job: dict[str, Any] | None) -> list[str]:
    """List the fields in which a job, as REST shows it, differs from this world."""
    if job is None or world.deleted:
        return [] if (job is None) == world.deleted else ["existence"]
    expected = {
        "status": world.status,
        "attempt": world.attempt or None,
        "attempt_count": world.attempt,
        "is_final": world.is_final,
        "can_cancel": not world.is_final and world.status != JobStatus.STOPPING,
        "can_hold": world.status == JobStatus.QUEUED and not world.held,
        "can_release": world.held,
        "can_delete": world.is_final,
        "num_nodes": program.nodes,
        **_of_ending(world, program),
    }
    wrong = [name for name, value in expected.items() if job[name] != value]
    if (job["wait_reason"] == WaitReason.HELD) != world.held:
        wrong.append("wait_reason")
    if (job["ended_at"] is not None) != world.is_final:
        wrong.append("ended_at")
    return wrong


def will_end(worlds: Worlds, program: Program) -> bool:
    """Whether a job ends without any request, provided that there is free capacity."""
    return all(_will_end(world, program) for world in worlds)


def will_run_on(worlds: Worlds, program: Program) -> bool:
    """Whether a job reaches RUNNING, provided that there is free capacity, and stays there."""
    stays = {JobStatus.QUEUED, JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING}
    return program.ending is None and all(
        world.status in stays and not world.held and not world.deleted for world in worlds
    )


def will_stay(worlds: Worlds, program: Program) -> bool:
    """Whether a job may hold its nodes until it is ended by a request."""
    return any(not world.held and not _will_end(world, program) for world in worlds)


def _will_end(world: World, program: Program) -> bool:
    if world.deleted or world.is_final or world.status == JobStatus.STOPPING:
        return True
    return program.ending is not None and not world.held


def _started(world: World) -> World:
    return replace(world, status=JobStatus.PROVISIONING, attempt=world.attempt + 1, machines=True)


def _cancel(world: World) -> tuple[Answer, World]:
    if world.is_final:
        return ENDED, world
    to = JobStatus.CANCELLED if world.status == JobStatus.QUEUED else JobStatus.STOPPING
    return (202, ""), replace(world, status=to, held=False)


def _hold(world: World) -> tuple[Answer, World]:
    if world.is_final:
        return ENDED, world
    if world.status != JobStatus.QUEUED:
        return CONFLICT, world
    return (200, ""), replace(world, held=True)


def _release(world: World) -> tuple[Answer, World]:
    return (ENDED, world) if world.is_final else ((200, ""), replace(world, held=False))


def _delete(world: World) -> tuple[Answer, World]:
    if not world.is_final:
        return (409, "job_not_final"), world
    if world.machines:
        return CONFLICT, world
    return (204, ""), replace(world, deleted=True)


def _of_ending(world: World, program: Program) -> dict[str, Any]:
    if world.status == JobStatus.CANCELLED:
        return {"stop_reason": "CANCELLED_BY_USER"}
    if world.is_final and program.ending:
        return {"stop_reason": program.ending.reason, "exit_code": program.ending.exit_code}
    return {}


# The same key and text once more give the same job, and a rerun leaves the first as it is.
_RESPONSES: dict[str, Callable[[World], tuple[Answer, World]]] = {
    "cancel": _cancel,
    "hold": _hold,
    "release": _release,
    "delete": _delete,
    "rerun": lambda world: ((201, ""), world),
    "submit": lambda world: ((201, ""), world),
}
