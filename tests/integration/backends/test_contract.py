"""Guarantees of every backend (`jobs.backends.base`), tested on each of them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.backends.base import ClusterPhase, LaunchRequest
from jobs.errors import NoCapacityError
from tests.integration.backends.asking import (
    launch,
    leftovers,
    phases_until,
    retried,
    stop,
    stop_until_ended,
    tear_down,
    view_of,
    wait_for,
)
from tests.integration.backends.rigs import GRACE_S, LINE, NODES, Rig
from tests.runner_harness import wait_until


def test_a_name_that_was_never_used_is_gone(rig: Rig) -> None:
    assert view_of(rig, rig.request("short")).phase is ClusterPhase.GONE


def test_no_error_about_a_name_that_was_never_used(rig: Rig) -> None:
    request = rig.request("short")
    stop(rig, request)
    tear_down(rig, request.cluster_name)
    assert list(leftovers(rig, request).frames) == []
    assert rig.remains(request.cluster_name) == []


def test_a_job_comes_up_on_every_node_and_ends(rig: Rig) -> None:
    request = rig.request("long", nodes=2)
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.UP)
    nodes = view_of(rig, request).nodes
    assert [(node.rank, node.alive) for node in nodes] == [(0, True), (1, True)]
    assert len({node.address for node in nodes}) == 2
    rig.kill_everything(request.cluster_name)
    wait_for(rig, request, ClusterPhase.ENDED)
    assert not any(node.alive for node in view_of(rig, request).nodes)


def test_a_launched_job_is_never_seen_gone_before_it_is_up(rig: Rig) -> None:
    request = rig.request("long")
    launch(rig, request)
    assert ClusterPhase.GONE not in set(phases_until(rig, request, ClusterPhase.UP))


def test_a_repeated_launch_is_one_launch(rig: Rig) -> None:
    request = rig.request("long", nodes=2)
    launch(rig, request)
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.UP)
    first = rig.incarnations(request.cluster_name)
    assert rig.started_once(request.cluster_name)
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.UP)
    assert rig.incarnations(request.cluster_name) == first


def test_launches_at_the_same_moment_are_one_launch(rig: Rig) -> None:
    request = rig.request("long", nodes=2)
    processes = [rig.another_process() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: retried(rig, lambda: one.launch(request)), processes))
    wait_for(rig, request, ClusterPhase.UP)
    assert rig.started_once(request.cluster_name)


def test_a_forgotten_launch_is_adopted_by_its_name(rig: Rig) -> None:
    request = rig.request("long")
    launch(rig, request)
    # The process that asked has died before it could store anything.
    successor, name, attempt = rig.another_process(), request.cluster_name, request.attempt_id
    view = retried(rig, lambda: successor.observe(name, attempt_id=attempt))
    assert view.phase is not ClusterPhase.GONE
    retried(rig, lambda: successor.launch(request))
    wait_for(rig, request, ClusterPhase.UP)
    assert rig.started_once(request.cluster_name)


def test_a_launch_repeated_after_the_end_starts_nothing(rig: Rig) -> None:
    request = rig.request("short")
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.ENDED)
    first = rig.incarnations(request.cluster_name)
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.ENDED)
    assert rig.incarnations(request.cluster_name) == first


def test_a_stopped_job_ends(rig: Rig) -> None:
    request = rig.request("long")
    launch(rig, request)
    rig.wait_for_line(request.cluster_name)
    stop_until_ended(rig, request)
    stop(rig, request)


def test_a_job_that_ignores_the_stop_is_killed_after_the_grace(rig: Rig) -> None:
    request = rig.request("stubborn", nodes=2)
    launch(rig, request)
    rig.wait_for_line(request.cluster_name)
    requested = time.monotonic()
    stop(rig, request)
    assert time.monotonic() - requested < GRACE_S  # it returns at once
    stop_until_ended(rig, request)
    assert time.monotonic() - requested >= GRACE_S


@pytest.mark.parametrize("behaviour", ["short", "long", "stubborn"])
def test_a_tear_down_leaves_nothing_behind(rig: Rig, behaviour) -> None:
    request = rig.request(behaviour, nodes=2)
    launch(rig, request)
    rig.wait_for_line(request.cluster_name)
    assert rig.remains(request.cluster_name)
    tear_down(rig, request.cluster_name)
    assert rig.remains(request.cluster_name) == []
    assert view_of(rig, request).phase is ClusterPhase.GONE
    tear_down(rig, request.cluster_name)


def test_frames_that_were_not_delivered_survive_their_runner(rig: Rig) -> None:
    rig.cut_off()
    request = rig.request("long")
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.UP)
    rig.wait_for_line(request.cluster_name)
    rig.kill_everything(request.cluster_name)
    wait_for(rig, request, ClusterPhase.ENDED)
    frames = [json.loads(frame) for frame in leftovers(rig, request).frames]
    assert LINE in [frame["text"] for frame in frames if frame["kind"] == "line"]
    numbers = [frame["seq"] for frame in frames if "seq" in frame and frame["rank"] == 0]
    assert numbers == list(range(1, len(numbers) + 1))
    tear_down(rig, request.cluster_name)
    assert list(leftovers(rig, request).frames) == []


def test_the_verdict_survives_the_acknowledgement_of_the_frames(rig: Rig) -> None:
    request = rig.request("short")
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.ENDED)
    last = json.loads(list(leftovers(rig, request).frames)[-1])
    assert (last["kind"], last["reason"]) == ("end", "COMPLETED")
    tear_down(rig, request.cluster_name)


def test_a_full_backend_has_no_capacity_and_takes_nothing(rig: Rig) -> None:
    # A backend that only quotas limit finds out when it asks.
    assert rig.backend.capacity_nodes() in {NODES, None}
    first, second, third = rig.request("long", 3), rig.request("long", 2), rig.request("long", 1)
    launch(rig, first)
    wait_for(rig, first, ClusterPhase.UP)
    wait_until(lambda: has_no_room(rig, second), rig.patience_s)
    tear_down(rig, second.cluster_name)
    assert rig.remains(second.cluster_name) == []
    assert view_of(rig, second).phase is ClusterPhase.GONE
    launch(rig, third)
    wait_for(rig, third, ClusterPhase.UP)
    tear_down(rig, first.cluster_name)
    fourth = rig.request("long", 2)
    launch(rig, fourth)
    wait_for(rig, fourth, ClusterPhase.UP)


def has_no_room(rig: Rig, request: LaunchRequest) -> bool:
    """Whether the launch is refused, at once or when its backend has tried."""
    try:
        launch(rig, request)
    except NoCapacityError:
        return True
    return isinstance(view_of(rig, request).failure, NoCapacityError)


def test_a_spec_that_never_fits_is_refused_before_it_is_queued(rig: Rig) -> None:
    assert retried(rig, lambda: rig.backend.check({"num_nodes": NODES, "run": "true"})) == []
    if rig.backend.capacity_nodes() is not None:
        assert [path for path, _ in rig.backend.check({"num_nodes": NODES + 1})] == ["num_nodes"]
