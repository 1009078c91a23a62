"""Deaths that a program lives through, on native Monarch and on proxies alike.

Each begins a call, prints with `begun` that the victim may be killed now, and returns its outcome.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from tests.integration.gateway.proxies.programs.mesh_programs import Named, original

Begun = Callable[[], None]
# A call is under way for longer than the death of something else takes.
PENDING_S = 4
CALLS = 20
# Nothing answers this one.
FOR_EVER_S = 600
ANSWERED = "answered once and in order"


def spawned(hosts: Any, named: Named) -> tuple[Any, Any]:
    """Return processes of this death's own, one a host, and actors in them."""
    procs = hosts.spawn_procs(per_host={"procs": 1})
    actors = procs.spawn("probe", named("Probe"))
    actors.rank.call().get(timeout=60)
    return procs, actors


def of_an_actor(hosts: Any, named: Named, begun: Begun) -> str:
    """Raise in an actor without a caller that waits: it ends, others of its process go on."""
    procs, actors = spawned(hosts, named)
    others = procs.spawn("other", named("Probe"))
    # No actor is spawned beside one that has failed.
    others.initialized.get(timeout=60)
    begun()
    actors.slice(hosts=1).diverge.broadcast(1)
    error = None
    for _ in range(CALLS):
        error = actors.slice(hosts=1).rank.call_one().exception(timeout=60)
        if error is not None:
            break
    assert isinstance(error, RuntimeError), error
    assert actors.slice(hosts=0).rank.call_one().get(timeout=60) == 0
    assert list(others.rank.call().get(timeout=60).values()) == [0, 1]
    return "RuntimeError"


def of_a_process(hosts: Any, named: Named, begun: Begun) -> str:
    """Kill a process: its pending call raises, actors of the other host go on."""
    _, actors = spawned(hosts, named)
    pid = actors.slice(hosts=1).pid.call_one().get(timeout=60)
    pending = actors.slice(hosts=1).wait.call_one(FOR_EVER_S)
    begun()
    os.kill(pid, signal.SIGKILL)
    error = pending.exception(timeout=60)
    assert isinstance(error, RuntimeError), error
    assert actors.slice(hosts=0).rank.call_one().get(timeout=60) == 0
    return "RuntimeError"


def of_a_part(hosts: Any, named: Named, begun: Begun) -> str:
    """Call actors while a part between program and workers, or of the portal, dies."""
    _, actors = spawned(hosts, named)
    pids = list(actors.pid.call().get(timeout=60).values())
    pending = actors.wait.call(PENDING_S)
    begun()
    assert list(pending.get(timeout=90).values()) == [PENDING_S] * 2
    for number in range(1, CALLS):
        actors.note.call(number).get(timeout=90)
    assert list(actors.notes.call().get(timeout=60).values()) == [list(range(CALLS))] * 2
    assert list(actors.pid.call().get(timeout=60).values()) == pids
    return ANSWERED


def of_a_host(hosts: Any, named: Named, begun: Begun) -> str:
    """Return the type of the error that a pending call to the lost host raises."""
    _, actors = spawned(hosts, named)
    pending = actors.slice(hosts=1).wait.call_one(FOR_EVER_S)
    begun()
    try:
        pending.get(timeout=120)
    except Exception as error:  # noqa: BLE001 - its type is the outcome
        return type(original(error)).__name__
    return "answered"


PARTS = ("gateway", "head", "postgres", "redis")
# The last one ends the job.
DEATHS: dict[str, Callable[[Any, Named, Begun], str]] = {
    "actor": of_an_actor,
    "process": of_a_process,
    **dict.fromkeys(PARTS, of_a_part),
    "host": of_a_host,
}
