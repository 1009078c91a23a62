"""The watch over the meshes on rank 0: its looks, its decisions, and its lines in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.logs.mesh_frames import what_is_wrong_with_tree
from monarch_client.runner.base.config import _parse
from monarch_client.runner.mesh import watch as mesh_watch
from monarch_client.runner.mesh.admin import MeshAdmin
from monarch_client.runner.mesh.walk import Walk
from monarch_client.runner.mesh.watch import MeshWatch
from tests.stand_in_admin import GONE, LATE, StandInAdmin
from tests.unit.runner.base.test_config import MINIMAL

HOSTS = {
    "host<h0>@tls://node1:22222": {"trainers<p0>@x": []},
    "host<h1>@tls://gpunode1:22222": {"trainers<p0>@y": []},
}
FIRST, SECOND = HOSTS


class Samples:
    """A store of the reported samples."""

    def __init__(self) -> None:
        self.trees: list[dict[str, Any]] = []

    def put(self, _rank: int, line: bytes, _kind: str) -> None:
        self.trees.append(json.loads(line))


@pytest.fixture
def stand_in() -> Iterator[StandInAdmin]:
    stand_in = StandInAdmin()
    stand_in.mesh(HOSTS)
    yield stand_in
    stand_in.close()


@pytest.fixture
def remarks() -> list[str]:
    return []


@pytest.fixture
def place(stand_in: StandInAdmin, remarks: list[str], tmp_path: Path) -> Any:
    (tmp_path / "admins.json").write_text(json.dumps({"urls": [stand_in.url]}))
    (tmp_path / "watch").touch()
    names = ["gpunode1", "node1"]
    nodes = [{"rank": rank, "address": name} for rank, name in enumerate(names)]
    config = _parse({**MINIMAL, "nodes": nodes})
    folder = SimpleNamespace(
        admins=tmp_path / "admins.json",
        watch=tmp_path / "watch",
        report=tmp_path / "report.json",
        goal=tmp_path / "goal",
    )
    recorder = SimpleNamespace(remark=remarks.append)
    return SimpleNamespace(
        config=config, folder=folder, recorder=recorder, samples=Samples(), rank=0
    )


@pytest.fixture
def watch(place: Any) -> Iterator[MeshWatch]:
    watch = MeshWatch(place)
    yield watch
    for admin in watch._admins:
        admin.close()


@pytest.fixture
def believing(watch: MeshWatch) -> MeshWatch:
    """Return a watch that counts a node as lost at its first missing answer."""
    watch._walk.misses.trust_reported_loss()
    return watch


def test_the_hosts_of_a_driver_that_ends_before_the_first_look_are_reported(watch, place) -> None:
    place.folder.admins.unlink()
    watch.report_last()
    assert place.samples.trees == []
    watch.has_ended = lambda rank: rank == 0
    watch._is_admin_new()
    watch.report_last()
    watch.report_last()
    (tree,) = place.samples.trees
    states = [(host["rank"], host["id"], host["state"]) for host in tree["hosts"]]
    assert states == [(0, "gpunode1:22222", "ended"), (1, "node1:22222", "unknown")]
    assert what_is_wrong_with_tree(tree, 2) == ""


def test_a_driver_whose_meshes_were_read_has_no_other_last_report(watch, place) -> None:
    watch._is_admin_new()
    watch._look()
    watch.report_last()
    assert len(place.samples.trees) == 1


def test_what_may_be_lost_is_queried_again_soon_however_long_a_look_takes(watch, stand_in) -> None:
    watch._look()
    assert watch._pause_after(0.1) == mesh_watch.PACE_S
    assert watch._pause_after(3.0) == 15.0
    stand_in.answers["trainers<p0>@y"] = GONE
    watch._look()
    pauses = [watch._pause_after(3.0) for _ in range(8)]
    # Not for ever: what stays uncertain must not take all of the admin's time.
    assert pauses == [1.0] * 6 + [15.0] + [1.0]


@pytest.mark.parametrize(
    ("lost", "answer", "look_s", "most_s"),
    [("trainers<p0>@y", GONE, 0.5, 15), (SECOND, LATE, 3.5, 20)],
)
def test_a_loss_is_reported_as_soon_as_is_promised(watch, stand_in, lost, answer, look_s, most_s):
    now = [0.0]
    watch._walk = Walk(watch._place.config.rank_at, lambda *_proc: True, lambda: now[0])
    watch._look()
    stand_in.answers[lost] = answer
    pause_s = mesh_watch.PACE_S
    while not any(state in json.dumps(watch._reported) for state in ("unreachable", "dead")):
        now[0] += pause_s
        watch._look()
        now[0] += look_s
        pause_s = watch._pause_after(look_s)
        # The carrier has the rest of the time.
        assert now[0] < most_s - 4


def test_no_pause_is_so_long_that_readers_take_us_for_silent(watch) -> None:
    assert watch._pause_after(500.0) == 20.0


@pytest.mark.parametrize(("kind", "is_believed"), [("monarch", True), ("user", False)])
def test_only_a_report_of_a_loss_is_believed(watch, place, kind, is_believed) -> None:
    place.folder.report.write_text(json.dumps({"kind": kind}))
    assert watch._rest(0.01)
    assert watch._walk.misses.has_reported_loss is is_believed


def test_a_lost_host_is_logged_once_it_is_lost_in_the_next_round_too(
    believing, stand_in, remarks
) -> None:
    stand_in.answers[SECOND] = LATE
    believing._look()
    assert remarks == []
    stand_in.mesh(HOSTS)
    believing._look()
    stand_in.answers[SECOND] = LATE
    believing._look()
    assert remarks == []
    believing._look()
    believing._look()
    (line,) = remarks
    assert "host gpunode1:22222 of rank 0 is unreachable" in line


def test_an_admin_that_ends_during_a_round_makes_no_host_unreachable(
    believing, place, stand_in, remarks, monkeypatch
) -> None:
    believing._look()
    reported = len(place.samples.trees)
    ask_all = MeshAdmin.ask_all

    def cut_off(self: MeshAdmin, *about: Any) -> Any:
        stand_in.close()
        self.close()
        return ask_all(self, *about)

    monkeypatch.setattr(MeshAdmin, "ask_all", cut_off)
    believing._look()
    assert (len(place.samples.trees), remarks) == (reported, [])
    assert not believing._walk.misses.are_any


def test_procs_of_the_same_name_on_two_hosts_are_both_reported(
    believing, stand_in, remarks
) -> None:
    stand_in.answers["trainers<p0>@x"] = stand_in.answers["trainers<p0>@y"] = GONE
    believing._look()
    assert [line.split(" is ")[0] for line in remarks] == [
        "The proc trainers<p0> of rank 0",
        "The proc trainers<p0> of rank 1",
    ]


def test_the_log_reports_a_silent_proc_once_and_its_death_again(
    believing, stand_in, remarks
) -> None:
    stand_in.answers["trainers<p0>@x"] = GONE
    believing._look()
    believing._look()
    believing.has_proc_ended = lambda rank, name: (rank, name) == (1, "trainers<p0>")
    believing._look()
    believing._look()
    assert [line.split(". ")[0] for line in remarks] == [
        "The proc trainers<p0> of rank 1 is silent",
        "The proc trainers<p0> of rank 1 is dead",
    ]


def test_a_host_has_the_rank_of_its_whole_address(watch, place) -> None:
    watch._look()
    hosts = place.samples.trees[-1]["hosts"]
    assert {host["id"]: host["rank"] for host in hosts} == {
        "gpunode1:22222": 0,
        "node1:22222": 1,
    }
