"""The hosts of a driver: this machine, or those of a Monarch mesh."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from monarch_client.context.amounts import CPU, UNIT, own_gpus, own_resources
from monarch_client.context.driver.attached_host import AttachedHost
from monarch_client.context.driver.executors import ExecutorPool, HostExecutors
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.stored_objects import StoredObjects
from monarch_client.context.driver.task_connections import Requests
from monarch_client.context.hosting.batches import Description
from monarch_client.context.hosting.link import HostLink
from monarch_client.context.hosting.local_host import LocalHost
from monarch_client.context.hosting.loop import Loop
from monarch_client.context.hosting.relay import DRIVER
from monarch_client.context.hosting.remote_hosts import RemoteHosts
from monarch_client.context.scheduling import Scheduler


class HostOwner(Requests, Protocol):
    """The driver, as the owner of its hosts."""

    loop: Loop
    objects: ObjectTable
    scheduler: Scheduler
    pool: ExecutorPool
    stored: StoredObjects

    def on_host_lost(self, name: str, reason: str) -> None:
        """Handle the end of a host."""


class LocalHosts:
    """The host of a driver without a mesh: this machine."""

    # No agent is there.
    write_summary = None

    def __init__(self, owner: HostOwner, resources: Mapping[str, float] | None) -> None:
        name = socket.gethostname()
        # It may be refused: before there are processes.
        found = Description(name, own_resources(resources), own_gpus())
        events = AttachedHost(owner.pool, partial(owner.on_host_lost, name))
        owner.stored.set_home(name)
        self.link = LocalHost(owner.loop, events, owner.stored.own.serve().address)
        events.attach(self.link, owner.objects, owner)
        _add(owner, found, self.link)

    def close(self) -> None:
        """End all processes."""
        self.link.close()


class MeshHosts:
    """The hosts of a Monarch mesh."""

    def __init__(self, owner: HostOwner, mesh: Any) -> None:
        owner.stored.set_home(DRIVER)
        self._hosts = RemoteHosts(mesh, owner.loop, owner.stored.own, owner.stored.settings)
        for host in self._hosts.hosts:
            name = host.description.name
            events = AttachedHost(owner.pool, partial(owner.on_host_lost, name))
            host.events = events
            events.attach(host, owner.objects, owner)
            owner.stored.add_host(name, host)
            _add(owner, host.description, host)
        self._hosts.start()

    @property
    def write_summary(self) -> Callable[[bytes], None] | None:
        """The way of a summary to a host whose runner reads it; None: no host has a runner."""
        return self._hosts.write_summary if self._hosts.take_summaries else None

    def close(self) -> None:
        """End the agents and all processes."""
        self._hosts.close()


def _add(owner: HostOwner, found: Description, link: HostLink) -> None:
    most_idle = max(2, found.amounts.get(CPU, 0) // UNIT + 1)
    owner.pool.add_host(HostExecutors(found.name, found.gpus, most_idle, link))
    owner.scheduler.add_host(found.name, found.amounts)
