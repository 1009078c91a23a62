"""The meshes of an attempt: hosts, procs and actors as last told, and what failed when."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobs.errors import LogStoreAwayError
from jobs.ground import clock
from jobs.logs.lines import LogLine, moment_of
from jobs.logs.reading import last_lines
from jobs.models import MeshTree
from jobs.permissions import Actor, job_for
from jobs.readers.chosen_attempt import chosen_attempt
from jobs.statuses import JobKind
from monarch_client.runner.vocabulary.mesh_states import FAILING, LOST, UNKNOWN

# Rank 0 tells at least every 15 seconds, every 30 where its lines are printed.
SILENT_AFTER = timedelta(seconds=75)
# Of how many losses, the latest ones, the last lines of their ranks are shown, and how many.
MOST_LOSSES, LINES_OF_A_LOSS = 3, 8


@dataclass(frozen=True, slots=True)
class ActorNode:
    """An actor of a proc. `why`: its failure. `told`: its state when it was last heard of."""

    id: str
    kind: str
    state: str
    told: str
    doing: str
    messages: int
    why: str

    @property
    def has_failed(self) -> bool:
        """Whether it was told so."""
        return self.told in FAILING


@dataclass(frozen=True, slots=True)
class ProcNode:
    """A process of a mesh. `why` says what was asked and what answered, where it is not alive."""

    id: str
    state: str
    told: str
    why: str
    left_out: int
    actors: list[ActorNode]

    @property
    def has_failed(self) -> bool:
        """Whether it, or one of its actors, was told so."""
        return self.told in FAILING or any(actor.has_failed for actor in self.actors)


@dataclass(frozen=True, slots=True)
class HostNode:
    """A host; `rank` is None for the driver's own side. `left_out`: procs that are not listed."""

    id: str
    rank: int | None
    mesh: str
    state: str
    told: str
    why: str
    left_out: int
    procs: list[ProcNode]


@dataclass(frozen=True, slots=True)
class MeshChange:
    """Something began to fail, or fails no longer; `lines`: the last ones of its rank by then."""

    at: datetime
    rank: int | None
    host: str
    proc: str
    actor: str
    state: str
    was: str
    why: str
    lines: list[LogLine] = field(default_factory=list)

    @property
    def is_failure(self) -> bool:
        """Whether it is the worse for it."""
        return self.state in FAILING


@dataclass(frozen=True, slots=True)
class MeshView:
    """The meshes of one attempt. `attempt`: its number, None before the first.

    `is_known`: the hosts are as they stand, or stood at the end; else their states are "unknown",
    and `why` says why. `at`: when something was last told. `changes`: newest first.
    """

    attempt: int | None
    is_monarch: bool
    is_over: bool
    is_final: bool
    is_known: bool = False
    at: datetime | None = None
    why: str = ""
    left_out: int = 0
    hosts: list[HostNode] = field(default_factory=list)
    changes: list[MeshChange] = field(default_factory=list)


def job_mesh(actor: Actor, slug: str, job_id: int, number: int | None = None) -> MeshView:
    """The meshes of an attempt, the newest unless `number` names one.

    NotFoundError as for `job_for`, or for an attempt that there is not.
    """
    job = job_for(actor, slug, job_id)
    is_monarch = job.kind == JobKind.MONARCH
    attempt = chosen_attempt(job, number)
    if attempt is None:
        return MeshView(None, is_monarch, is_over=False, is_final=job.is_final)
    is_over = attempt.ended_at is not None
    is_final = is_over and (job.is_final or number is not None)
    row = MeshTree.objects.filter(pk=attempt.pk).first()
    if row is None:
        return MeshView(attempt.number, is_monarch, is_over, is_final)
    why = "" if is_over else _why_unknown(row)
    meshes = dict(attempt.workers.values_list("rank", "mesh"))
    return MeshView(
        attempt=attempt.number,
        is_monarch=is_monarch,
        is_over=is_over,
        is_final=is_final,
        is_known=not why,
        at=row.at,
        why=why,
        left_out=row.latest["left_out"],
        hosts=[_host(each, meshes, is_known=not why) for each in row.latest["hosts"]],
        changes=_changes(row),
    )


def _why_unknown(row: MeshTree) -> str:
    """Why nobody knows how the hosts are now; empty when somebody does."""
    if clock.now() - row.at > SILENT_AFTER:
        return f"Nothing was told of the meshes for more than {SILENT_AFTER.seconds} seconds."
    return "" if row.latest["answers"] else row.latest["why"] or "The driver does not answer."


def _host(host: dict[str, Any], meshes: dict[int, str], *, is_known: bool) -> HostNode:
    return HostNode(
        id=host["id"],
        rank=host["rank"],
        mesh=meshes.get(host["rank"], ""),
        state=host["state"] if is_known else UNKNOWN,
        told=host["state"],
        why=host["why"],
        left_out=host["left_out"],
        procs=[_proc(each, is_known=is_known) for each in host["procs"]],
    )


def _proc(proc: dict[str, Any], *, is_known: bool) -> ProcNode:
    return ProcNode(
        id=proc["id"],
        state=proc["state"] if is_known else UNKNOWN,
        told=proc["state"],
        why=proc["why"],
        left_out=proc["left_out"],
        actors=[_actor(each, is_known=is_known) for each in proc["actors"]],
    )


def _actor(actor: dict[str, Any], *, is_known: bool) -> ActorNode:
    state = actor["state"]
    return ActorNode(**{**actor, "state": state if is_known else UNKNOWN, "told": state})


def _changes(row: MeshTree) -> list[MeshChange]:
    changes = row.changes[::-1]
    losses = [each for each in changes if each["state"] in LOST and each["rank"] is not None]
    shown = [id(each) for each in losses[:MOST_LOSSES]]
    return [
        MeshChange(
            at=moment_of(int(each["at"] * 1000)),
            lines=_lines(row, each) if id(each) in shown else [],
            **{name: each[name] for name in _CHANGE_FIELDS},
        )
        for each in changes
    ]


_CHANGE_FIELDS = ("rank", "host", "proc", "actor", "state", "was", "why")


def _lines(row: MeshTree, change: dict[str, Any]) -> list[LogLine]:
    try:
        return last_lines(row.pk, change["line"], LINES_OF_A_LOSS, change["rank"])
    except LogStoreAwayError:
        # All else of the mesh is in the database.
        return []
