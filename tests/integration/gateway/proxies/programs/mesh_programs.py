"""Programs that drive a mesh of two hosts. Each runs unchanged on native Monarch and on proxies.

They get the host mesh and `named`, which returns a class of the code on the cluster as the kind of
mesh wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.integration.gateway.proxies.programs.probe_values import DivergedError, Report

Named = Callable[[str], Any]


PROCS: dict[int, Any] = {}


def probes(hosts: Any, named: Named, count: int = 2) -> Any:
    """Return new actors, in processes that programs share."""
    if count not in PROCS:
        PROCS[count] = hosts.spawn_procs(per_host={"procs": count})
    return PROCS[count].spawn("probe", named("Probe"))


def original(error: BaseException) -> BaseException:
    """Return the exception of an actor, which native Monarch wraps."""
    return getattr(error, "exception", error)


def calls_reach_all_actors(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named)
    assert (actors.sizes, len(actors), actors.size("procs")) == ({"hosts": 2, "procs": 2}, 4, 2)
    ranks = actors.rank.call().get(timeout=60)
    assert list(ranks.values()) == [0, 1, 2, 3]
    assert ranks.sizes == {"hosts": 2, "procs": 2}
    assert ranks.item(hosts=1, procs=0) == 2
    assert ranks.slice(hosts=1).item(procs=1) == 3
    assert list(ranks.flatten("rank").items())[3][0].rank == 3
    assert [(dict(point), value) for point, value in ranks.items()][1] == (
        {"hosts": 0, "procs": 1},
        1,
    )


def results_at_wrong_coordinates_are_errors(hosts: Any, named: Named) -> None:
    ranks = probes(hosts, named, 1).rank.call().get(timeout=60)
    with pytest.raises(IndexError):
        ranks.item(hosts=5, procs=0)
    with pytest.raises(KeyError):
        ranks.item(hosts=0)
    with pytest.raises(KeyError):
        ranks.item(hosts=0, procs=0, racks=0)
    with pytest.raises(TypeError):
        ranks.slice(racks=0)


def slices_reach_their_own_actors_only(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named)
    second = actors.slice(hosts=1)
    second.note.call(7).get(timeout=60)
    assert list(actors.notes.call().get(timeout=60).values()) == [[0], [0], [0, 7], [0, 7]]
    assert set(second.host.call().get(timeout=60).values()) == {"1"}
    assert actors.slice(hosts=1, procs=0).rank.call_one().get(timeout=60) == 2
    odd = actors.flatten("rank").slice(rank=slice(1, None, 2))
    assert list(odd.rank.call().get(timeout=60).values()) == [1, 3]
    split = actors.split(procs=("left", "right"), left=2)
    assert split.sizes == {"hosts": 2, "left": 2, "right": 1}
    assert split.slice(hosts=0, left=1, right=0).rank.call_one().get(timeout=60) == 1
    with pytest.raises(IndexError):
        actors.slice(hosts=2)
    with pytest.raises(TypeError):
        actors.slice(racks=0)
    with pytest.raises(ValueError):
        odd.flatten("again")


def processes_start_on_the_sliced_hosts(hosts: Any, named: Named) -> None:
    procs = hosts.slice(hosts=1).spawn_procs(per_host={"procs": 2}, name="second")
    actors = procs.spawn("probe", named("Probe"))
    assert list(actors.host.call().get(timeout=60).values()) == ["1", "1"]
    half = procs.slice(procs=1)
    assert half.sizes == {}
    assert half.spawn("half", named("Probe"), 5).notes.call_one().get(timeout=60) == [5]
    with pytest.raises(ValueError):
        hosts.spawn_procs(per_host={"hosts": 2})


def call_one_needs_a_single_actor(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    with pytest.raises(ValueError):
        actors.rank.call_one().get(timeout=60)
    assert actors.slice(hosts=1).rank.call_one().get(timeout=60) == 1


def choose_reaches_one_of_them(hosts: Any, named: Named) -> None:
    assert probes(hosts, named).rank.choose().get(timeout=60) in range(4)


def a_stream_has_each_result_and_each_error(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    assert {future.get(timeout=60) for future in actors.rank.stream()} == {0, 1}
    results = []
    for future in actors.diverge.stream(9, rank=1, others_wait_s=0.3):
        error = future.exception(timeout=60)
        results.append(repr(original(error)) if error else future.get())
    assert sorted(map(str, results)) == ["9", repr(DivergedError(9))], results


def a_broadcast_arrives_before_later_calls(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    assert actors.note.broadcast(4) is None
    assert list(actors.notes.call().get(timeout=60).values()) == [[0, 4], [0, 4]]


def many_calls_are_in_flight_in_order(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    first = actors.slice(hosts=0)
    futures = [first.note.call_one(number) for number in range(1, 301)]
    assert [future.get(timeout=60) for future in futures] == list(range(2, 302))
    assert first.notes.call_one().get(timeout=60) == list(range(301))


def a_slow_call_does_not_delay_others(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    actors.rank.call().get(timeout=60)
    slow = actors.slice(hosts=0).wait.call_one(2)
    assert actors.slice(hosts=1).rank.call_one().get(timeout=60) == 1
    with pytest.raises(TimeoutError):
        slow.get(timeout=0.01)
    assert slow.get(timeout=60) == 2


def exceptions_keep_their_type(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    with pytest.raises(Exception) as caught:
        actors.look_up.call("missing").get(timeout=60)
    assert repr(original(caught.value)) == "KeyError('missing')"
    error = actors.slice(hosts=0).diverge.call_one(3).exception(timeout=60)
    assert (type(original(error)), original(error).step) == (DivergedError, 3)
    assert "probe_actors.py" in str(getattr(error, "__cause__", None) or error)
    # The actors go on.
    assert len(actors.rank.call().get(timeout=60)) == 2


def wrong_arguments_are_a_type_error(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    with pytest.raises(TypeError):
        actors.look_up.call().get(timeout=60)
    with pytest.raises(AttributeError):
        actors.nowhere  # noqa: B018


def an_endpoint_named_as_a_method_is_refused(hosts: Any, named: Named) -> None:
    procs = hosts.slice(hosts=0).spawn_procs()
    with pytest.raises(ValueError, match="collides"):
        procs.spawn("colliding", named("Colliding"))


def values_come_back_as_they_were(hosts: Any, named: Named) -> None:
    actor = probes(hosts, named, 1).slice(hosts=0)
    value = {"text": "é", 3: (1, {2}, b"\0"), "none": [None, True, 1 << 80, 0.1]}
    assert actor.echo.call_one(value, extra=(1,)).get(timeout=60) == (value, (1,))
    array = np.arange(24, dtype="<f4").reshape(2, 3, 4)[:, ::2]
    found = actor.echo.call_one([array]).get(timeout=60)[0]
    assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())
    assert actor.report.call_one().get(timeout=60) == Report(0, [0.5, 0.25])


def a_mesh_is_an_argument(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)
    others = probes(hosts, named)
    found = actors.slice(hosts=0).ask.call_one(others.slice(procs=1)).get(timeout=60)
    assert found == [1, 3]


def futures_are_awaited(hosts: Any, named: Named) -> None:
    actors = probes(hosts, named, 1)

    async def program() -> None:
        first = actors.slice(hosts=0).echo.call_one(1)
        both = await actors.rank.call()
        assert (await first, list(both.values())) == (1, [0, 1])
        with pytest.raises(Exception) as caught:
            await actors.slice(hosts=0).diverge.call_one(3)
        assert original(caught.value).step == 3

    asyncio.run(program())


def the_death_of_an_actor_is_a_runtime_error(hosts: Any, named: Named) -> None:
    procs = hosts.spawn_procs(per_host={"procs": 1})
    actors = procs.spawn("probe", named("Probe"))
    actors.rank.call().get(timeout=60)
    with pytest.raises(RuntimeError):
        actors.slice(hosts=0).die.call_one().get(timeout=60)
    assert actors.slice(hosts=1).rank.call_one().get(timeout=60) == 1
    assert len(probes(hosts, named, 1).rank.call().get(timeout=60)) == 2


def meshes_are_initialized_and_stopped(hosts: Any, named: Named) -> None:
    procs = hosts.spawn_procs(per_host={"procs": 1})
    assert procs.initialized.get(timeout=60) is True
    actors = procs.spawn("probe", named("Probe"))
    actors.initialized.get(timeout=60)
    actors.stop().get(timeout=60)
    assert procs.stop().get(timeout=60) is None
    with pytest.raises(RuntimeError):
        actors.rank.call().get(timeout=60)


PROGRAMS: dict[str, Callable[[Any, Named], None]] = {
    program.__name__: program
    for program in (
        calls_reach_all_actors,
        results_at_wrong_coordinates_are_errors,
        slices_reach_their_own_actors_only,
        processes_start_on_the_sliced_hosts,
        call_one_needs_a_single_actor,
        choose_reaches_one_of_them,
        a_stream_has_each_result_and_each_error,
        a_broadcast_arrives_before_later_calls,
        many_calls_are_in_flight_in_order,
        a_slow_call_does_not_delay_others,
        exceptions_keep_their_type,
        wrong_arguments_are_a_type_error,
        an_endpoint_named_as_a_method_is_refused,
        values_come_back_as_they_were,
        a_mesh_is_an_argument,
        futures_are_awaited,
        the_death_of_an_actor_is_a_runtime_error,
        meshes_are_initialized_and_stopped,
    )
}
