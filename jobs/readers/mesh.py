"""The meshes of an attempt: hosts, procs and actors as last reported, and what failed when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.errors import LogStoreAwayError
from jobs.ground import clock
from jobs.logs.lines import moment_of
from jobs.logs.reading import last_lines
from jobs.models import MeshTree
from jobs.permissions import Actor, job_for
from jobs.readers.chosen_attempt import chosen_attempt
from jobs.statuses import JobKind
from monarch_client.runner.vocabulary.mesh_states import FAILING, LOST, UNKNOWN
from monarch_client.wire.mesh import Mesh, MeshActor, MeshChange, MeshHost, MeshLine, MeshProc

# Rank 0 reports at least every 15 seconds, every 30 where its lines are printed.
SILENT_AFTER = timedelta(seconds=75)
# Of how many losses, the latest ones, the last lines of their ranks are shown, and how many.
MOST_LOSSES, LINES_OF_A_LOSS = 3, 8


def job_mesh(actor: Actor, slug: str, job_id: int, number: int | None = None) -> Mesh:
    """Return the meshes of an attempt, the newest unless `number` names one.

    NotFoundError as for `job_for`, or for an attempt that does not exist.
    """
    job = job_for(actor, slug, job_id)
    is_monarch = job.kind == JobKind.MONARCH
    attempt = chosen_attempt(job, number)
    if attempt is None:
        return _empty(None, is_monarch=is_monarch, is_over=False, is_final=job.is_final)
    is_over = attempt.ended_at is not None
    is_final = is_over and (job.is_final or number is not None)
    row = MeshTree.objects.filter(pk=attempt.pk).first()
    if row is None:
        return _empty(attempt.number, is_monarch=is_monarch, is_over=is_over, is_final=is_final)
    why = "" if is_over else _why_unknown(row)
    meshes = dict(attempt.workers.values_list("rank", "mesh"))
    return Mesh(
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


def has_failed(node: MeshProc | MeshActor) -> bool:
    """Whether the actor, or the proc or one of its actors, was reported as failed."""
    actors = node.actors if isinstance(node, MeshProc) else []
    return node.told in FAILING or any(map(has_failed, actors))


def _empty(number: int | None, *, is_monarch: bool, is_over: bool, is_final: bool) -> Mesh:
    """Return the meshes of an attempt of which nothing was reported."""
    return Mesh(
        attempt=number,
        is_monarch=is_monarch,
        is_over=is_over,
        is_final=is_final,
        is_known=False,
        at=None,
        why="",
        left_out=0,
        hosts=[],
        changes=[],
    )


def _why_unknown(row: MeshTree) -> str:
    """Return why the hosts' present state is unknown; empty when it is known."""
    if clock.now() - row.at > SILENT_AFTER:
        return f"The last report of the meshes is more than {SILENT_AFTER.seconds} seconds old."
    return "" if row.latest["answers"] else row.latest["why"] or "The driver does not respond."


def _host(host: dict[str, Any], meshes: dict[int, str], *, is_known: bool) -> MeshHost:
    return MeshHost(
        id=host["id"],
        rank=host["rank"],
        mesh=meshes.get(host["rank"], ""),
        state=host["state"] if is_known else UNKNOWN,
        told=host["state"],
        why=host["why"],
        left_out=host["left_out"],
        procs=[_proc(each, is_known=is_known) for each in host["procs"]],
    )


def _proc(proc: dict[str, Any], *, is_known: bool) -> MeshProc:
    return MeshProc(
        id=proc["id"],
        state=proc["state"] if is_known else UNKNOWN,
        told=proc["state"],
        why=proc["why"],
        left_out=proc["left_out"],
        actors=[_actor(each, is_known=is_known) for each in proc["actors"]],
    )


def _actor(actor: dict[str, Any], *, is_known: bool) -> MeshActor:
    state = actor["state"]
    return MeshActor(**{**actor, "state": state if is_known else UNKNOWN, "told": state})


def _changes(row: MeshTree) -> list[MeshChange]:
    changes = row.changes[::-1]
    losses = [each for each in changes if each["state"] in LOST and each["rank"] is not None]
    shown = [id(each) for each in losses[:MOST_LOSSES]]
    return [
        MeshChange(
            at=moment_of(int(each["at"] * 1000)),
            is_failure=each["state"] in FAILING,
            lines=_lines(row, each) if id(each) in shown else [],
            **{name: each[name] for name in _CHANGE_FIELDS},
        )
        for each in changes
    ]


_CHANGE_FIELDS = ("rank", "host", "proc", "actor", "state", "was", "why")


def _lines(row: MeshTree, change: dict[str, Any]) -> list[MeshLine]:
    try:
        found = last_lines(row.pk, change["line"], LINES_OF_A_LOSS, change["rank"])
    except LogStoreAwayError:
        # All else of the mesh is in the database.
        return []
    return [
        MeshLine(number=each.number, stream=each.stream, at=each.at, text=each.text)
        for each in found
    ]
