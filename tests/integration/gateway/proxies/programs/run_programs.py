"""Run every mesh program on one kind of mesh, in a process of its own, since it has Monarch once.

`driver`: Monarch in a job's own driver. `attached JOB`: Monarch on a laptop, through the portal.
`proxies JOB`: the same without torchmonarch, which cannot be imported then. The programs run first,
then the deaths. Prints a JSON line for each: its name, and its traceback or "".
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

ACTORS = "tests.integration.gateway.proxies.programs.probe_actors"
Setting = tuple[Any, Callable[[str], Any]]


@contextmanager
def driver() -> Iterator[Setting]:
    from monarch import actor

    from tests.integration.gateway.proxies.programs import probe_actors

    actor.unhandled_fault_hook = lambda _failure: None
    # On the PYTHONPATH of jobs only.
    runtime = importlib.import_module("mportal_runtime")
    yield runtime.meshes.trainers, lambda name: getattr(probe_actors, name)


@contextmanager
def attached(job: str) -> Iterator[Setting]:
    from monarch import actor

    from monarch_client.gateway import connect
    from tests.integration.gateway.proxies.programs import probe_actors

    actor.unhandled_fault_hook = lambda _failure: None
    with connect(job) as meshes:
        yield meshes.trainers, lambda name: getattr(probe_actors, name)


@contextmanager
def proxies(job: str) -> Iterator[Setting]:
    sys.modules["monarch"] = None
    from monarch_client.gateway import connect

    with connect(job, proxy=True) as meshes:
        yield meshes.trainers, lambda name: f"{ACTORS}:{name}"


def say(kind: str, *words: str) -> None:
    sys.stdout.write(f"{kind} {json.dumps(words)}\n")
    sys.stdout.flush()


def main(setting: AbstractContextManager[Setting]) -> None:
    from tests.integration.gateway.proxies.programs.mesh_deaths import DEATHS
    from tests.integration.gateway.proxies.programs.mesh_programs import PROGRAMS

    with setting as (hosts, named):
        for name, program in PROGRAMS.items():
            failure = ""
            try:
                program(hosts, named)
            except Exception:  # noqa: BLE001 - the test gets it
                failure = traceback.format_exc()
            say("program", name, failure)
        for name, death in DEATHS.items():
            try:
                outcome = death(hosts, named, partial(say, "begun", name))
            except Exception:  # noqa: BLE001 - the test gets it
                outcome = traceback.format_exc()
            say("survived", name, outcome)


if __name__ == "__main__":
    main({"driver": driver, "attached": attached, "proxies": proxies}[sys.argv[1]](*sys.argv[2:]))
