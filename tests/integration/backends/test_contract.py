"""What every backend promises (`jobs.backends.base`), shown on each of them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.backends.base import ClusterPhase
from jobs.errors import NoCapacityError
from tests.integration.backends.rigs import GRACE_S, LINE, NODES, Rig, wait_for_phase


def test_a_name_nobody_has_used_is_gone(rig: Rig) -> None:
    assert rig.backend.observe("mptest-unknown").phase is ClusterPhase.GONE


def test_silence_about_a_name_nobody_has_used(rig: Rig) -> None:
    rig.backend.stop("mptest-unknown", GRACE_S)
    rig.backend.tear_down("mptest-unknown")
    assert list(rig.backend.leftovers("mptest-unknown").frames) == []
    assert rig.remains("mptest-unknown") == []


def test_a_job_comes_up_on_every_node_and_ends(rig: Rig) -> None:
    request = rig.request("long", nodes=2)
    name = request.cluster_name
    rig.backend.launch(request)
    wait_for_phase(rig.backend, name, ClusterPhase.UP)
    nodes = rig.backend.observe(name).nodes
    assert [(node.rank, node.alive) for node in nodes] == [(0, True), (1, True)]
    assert len({node.address for node in nodes}) == 2
    rig.kill_everything(name)
    wait_for_phase(rig.backend, name, ClusterPhase.ENDED)
    assert not any(node.alive for node in rig.backend.observe(name).nodes)


def test_a_repeated_launch_is_one_launch(rig: Rig) -> None:
    request = rig.request("long", nodes=2)
    rig.backend.launch(request)
    first = rig.incarnations(request.cluster_name)
    rig.backend.launch(request)
    assert rig.incarnations(request.cluster_name) == first


def test_launches_at_the_same_moment_are_one_launch(rig: Rig) -> None:
    request = rig.request("long", nodes=2)
    processes = [rig.another_process() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda backend: backend.launch(request), processes))
    wait_for_phase(rig.backend, request.cluster_name, ClusterPhase.UP)
    assert rig.started_once(request.cluster_name)


def test_a_launch_that_nobody_remembers_is_adopted_by_its_name(rig: Rig) -> None:
    request = rig.request("long")
    rig.backend.launch(request)
    first = rig.incarnations(request.cluster_name)
    # The process that asked has died before it could store anything.
    successor = rig.another_process()
    assert successor.observe(request.cluster_name).phase is not ClusterPhase.GONE
    successor.launch(request)
    wait_for_phase(successor, request.cluster_name, ClusterPhase.UP)
    assert rig.incarnations(request.cluster_name) == first


def test_a_launch_repeated_after_the_end_starts_nothing(rig: Rig) -> None:
    request = rig.request("short")
    rig.backend.launch(request)
    wait_for_phase(rig.backend, request.cluster_name, ClusterPhase.ENDED)
    first = rig.incarnations(request.cluster_name)
    rig.backend.launch(request)
    assert rig.incarnations(request.cluster_name) == first
    assert rig.backend.observe(request.cluster_name).phase is ClusterPhase.ENDED


def test_a_stopped_job_ends(rig: Rig) -> None:
    request = rig.request("long")
    rig.backend.launch(request)
    rig.wait_for_line(request.cluster_name)
    rig.backend.stop(request.cluster_name, GRACE_S)
    wait_for_phase(rig.backend, request.cluster_name, ClusterPhase.ENDED)
    rig.backend.stop(request.cluster_name, GRACE_S)


def test_a_job_that_ignores_the_stop_is_killed_after_the_grace(rig: Rig) -> None:
    request = rig.request("stubborn", nodes=2)
    rig.backend.launch(request)
    rig.wait_for_line(request.cluster_name)
    asked = time.monotonic()
    rig.backend.stop(request.cluster_name, GRACE_S)
    assert time.monotonic() - asked < GRACE_S  # it returns at once
    wait_for_phase(rig.backend, request.cluster_name, ClusterPhase.ENDED)
    assert time.monotonic() - asked >= GRACE_S


@pytest.mark.parametrize("behaviour", ["short", "long", "stubborn"])
def test_a_tear_down_leaves_nothing_behind(rig: Rig, behaviour) -> None:
    request = rig.request(behaviour, nodes=2)
    rig.backend.launch(request)
    rig.wait_for_line(request.cluster_name)
    assert rig.remains(request.cluster_name)
    rig.backend.tear_down(request.cluster_name)
    assert rig.remains(request.cluster_name) == []
    assert rig.backend.observe(request.cluster_name).phase is ClusterPhase.GONE
    rig.backend.tear_down(request.cluster_name)


def test_frames_that_were_not_delivered_survive_their_runner(rig: Rig) -> None:
    rig.cut_off()
    request = rig.request("long")
    name = request.cluster_name
    rig.backend.launch(request)
    wait_for_phase(rig.backend, name, ClusterPhase.UP)
    rig.wait_for_line(name)
    rig.kill_everything(name)
    frames = [json.loads(frame) for frame in rig.backend.leftovers(name).frames]
    assert LINE in [frame["text"] for frame in frames if frame["kind"] == "line"]
    numbers = [frame["seq"] for frame in frames if frame["rank"] == 0]
    assert numbers == list(range(1, len(numbers) + 1))
    rig.backend.tear_down(name)
    assert list(rig.backend.leftovers(name).frames) == []


def test_a_full_backend_has_no_capacity_and_takes_nothing(rig: Rig) -> None:
    assert rig.backend.capacity_nodes() == NODES
    first, second, third = rig.request("long", 3), rig.request("long", 2), rig.request("long", 1)
    rig.backend.launch(first)
    with pytest.raises(NoCapacityError):
        rig.backend.launch(second)
    assert rig.remains(second.cluster_name) == []
    assert rig.backend.observe(second.cluster_name).phase is ClusterPhase.GONE
    rig.backend.launch(third)
    rig.backend.tear_down(first.cluster_name)
    rig.backend.launch(second)


def test_a_spec_that_never_fits_is_refused_before_it_is_queued(rig: Rig) -> None:
    assert rig.backend.check({"num_nodes": NODES, "run": "true"}) == []
    assert [path for path, _ in rig.backend.check({"num_nodes": NODES + 1})] == ["num_nodes"]
