"""Run every mesh program on one kind of mesh, in a process of its own, since it has Monarch once.

`native ADDRESSES TRANSPORT`; `tunnel URL TICKET`, Monarch through a gateway; or `proxy ADDRESS`,
for which torchmonarch cannot be imported, as on a laptop without it. Prints a JSON line for each
program: its name and its traceback, if it failed.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

ACTORS = "tests.integration.gateway.proxies.programs.probe_actors"
Setting = tuple[Any, Callable[[str], Any]]


@contextmanager
def native(addresses: str, transport: str) -> Iterator[Setting]:
    from monarch import actor

    from tests.integration.gateway.proxies.programs import probe_actors

    actor.unhandled_fault_hook = lambda _failure: None
    actor.enable_transport(transport)
    hosts = actor.attach_to_workers(ca="trust_all_connections", workers=addresses.split(","))
    hosts.initialized.get(timeout=60)
    yield hosts, lambda name: getattr(probe_actors, name)
    hosts.stop().get(timeout=30)


@contextmanager
def tunnel(url: str, ticket: str) -> Iterator[Setting]:
    from monarch import actor

    from monarch_client.gateway.connecting import Connection
    from monarch_client.gateway.opening import Opening
    from tests.integration.gateway.proxies.programs import probe_actors

    actor.unhandled_fault_hook = lambda _failure: None
    with Connection(Opening(url, "job 7", 7, ticket), None) as meshes:
        yield meshes.trainers, lambda name: getattr(probe_actors, name)


@contextmanager
def proxy(address: str) -> Iterator[Setting]:
    sys.modules["monarch"] = None
    from monarch_client.gateway.proxies import connect_proxies

    with connect_proxies(address) as meshes:
        yield meshes.trainers, lambda name: f"{ACTORS}:{name}"


def main(setting: AbstractContextManager[Setting]) -> None:
    from tests.integration.gateway.proxies.programs.mesh_programs import PROGRAMS

    with setting as (hosts, named):
        for name, program in PROGRAMS.items():
            failure = ""
            try:
                program(hosts, named)
            except Exception:  # noqa: BLE001 - the test gets it
                failure = traceback.format_exc()
            sys.stdout.write(f"program {json.dumps([name, failure])}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main({"native": native, "tunnel": tunnel, "proxy": proxy}[sys.argv[1]](*sys.argv[2:]))
