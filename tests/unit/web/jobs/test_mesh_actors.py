"""Actors by the names of the program, on each host."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from jobs.web.jobs.mesh_actors import MOST_HOSTS, actor_heat
from monarch_client.wire.mesh import Mesh, MeshActor, MeshChange, MeshHost, MeshProc
from tests import mesh_frames

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


def host(rank: int | None, *procs: dict[str, Any]) -> MeshHost:
    known = mesh_frames.host(rank, procs=list(procs))
    rows = [
        MeshProc(**{**proc, "actors": list(map(actor, proc["actors"]))}, told=proc["state"])
        for proc in procs
    ]
    return MeshHost(**{**known, "mesh": "", "procs": rows}, told=known["state"])


def actor(known: dict[str, Any]) -> MeshActor:
    return MeshActor(**known, told=known["state"])


def mesh(*hosts: MeshHost, changes: tuple[MeshChange, ...] = ()) -> Mesh:
    return Mesh(
        attempt=1,
        is_monarch=True,
        is_over=False,
        is_final=False,
        is_known=True,
        at=AT,
        why="",
        left_out=0,
        hosts=list(hosts),
        changes=list(changes),
    )


def failure(of: MeshHost, seconds: int) -> MeshChange:
    return MeshChange(
        at=AT - timedelta(seconds=seconds),
        rank=of.rank,
        host=of.id,
        proc="",
        actor="",
        state="dead",
        was="alive",
        why="",
        is_failure=True,
        lines=[],
    )


def proc(*names: str, **fields: Any) -> dict[str, Any]:
    actors = [mesh_frames.actor(name) for name in names]
    return mesh_frames.proc("trainers<p1>", actors=actors, **fields)


def test_actors_of_a_name_are_one_row_and_no_better_than_their_process():
    lost = host(1, proc("train<c>", state="dead"), proc("train<d>"))
    found = mesh(
        host(0, proc("train<a>", "save<b>")), lost, changes=(failure(lost, 9), failure(lost, 99))
    )
    heat = actor_heat(found, only_unwell=False)
    assert [each.rank for each in heat.hosts] == [0, 1]
    # What is not healthy comes first.
    assert [row.name for row in heat.rows] == ["train", "save"]
    well, bad = heat.rows[0].cells
    assert well is not None and bad is not None
    assert (well.state, well.actors, well.unwell) == ("running", 1, 0)
    assert (bad.state, bad.actors, bad.unwell) == ("dead", 2, 1)
    moment = int(AT.timestamp() * 1000)
    assert (well.at_ms, bad.at_ms) == (moment, moment - 9000)
    assert heat.rows[1].cells[1] is None
    assert heat.unwell == 1


def test_the_filter_leaves_names_and_hosts_that_are_not_healthy():
    found = mesh(host(0, proc("train<a>", "save<b>")), host(1, proc("train<c>", state="poisoned")))
    heat = actor_heat(found, only_unwell=True)
    assert [each.rank for each in heat.hosts] == [1]
    assert [row.name for row in heat.rows] == ["train"]
    well = actor_heat(mesh(host(0, proc("train<a>"))), only_unwell=True)
    assert (well.hosts, well.rows) == ([], [])


def test_of_many_hosts_the_unhealthy_ones_are_shown():
    hosts = [host(rank, proc("train<a>")) for rank in range(MOST_HOSTS + 20)]
    hosts.append(host(500, proc("train<a>", state="dead")))
    heat = actor_heat(mesh(*hosts), only_unwell=False)
    assert (len(heat.hosts), heat.hosts[-1].rank, heat.hosts_left_out) == (MOST_HOSTS, 500, 21)
