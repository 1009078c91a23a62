"""The hosts of a Monarch mesh, each through its agent."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from monarch_client.context.errors import ContextError
from monarch_client.context.hosting import batches
from monarch_client.context.hosting.addresses import own_host
from monarch_client.context.hosting.agent_faults import AGENT_FAULTS
from monarch_client.context.hosting.batches import AgentSettings, Description, Operation, Silence
from monarch_client.context.hosting.loop import Loop
from monarch_client.context.hosting.rdma import remote_memory
from monarch_client.context.hosting.reach import Reach
from monarch_client.context.hosting.relay import DRIVER, PartReader, PartServer, Router
from monarch_client.context.objects import HostObjects

if TYPE_CHECKING:
    from monarch_client.context.hosting.link import HostEvents

log = logging.getLogger("monarch_client.context")
START_S = 90.0
END_S = 10.0
# The sender of a message to this process itself.
_OWN_RANK = -1


class RemoteHost:
    """One host: operations are collected, and sent by a thread as batches."""

    def __init__(self, description: Description, agent: Any, wake: Callable[[], None]) -> None:
        self.description = description
        self.events: HostEvents
        self.router: Router
        self.silence = Silence(time.monotonic())
        self.sent_at = 0.0
        self.is_lost = self.is_closed = False
        self._agent = agent
        self._wake = wake
        self._operations: list[Operation] = []

    def fork(self, executor: int, env: Mapping[str, str]) -> None:
        """Start an executor."""
        self._add(batches.FORK, executor, msgspec.msgpack.encode(dict(env)))

    def send(self, executor: int, data: bytes) -> None:
        """Send calls to an executor."""
        self._add(batches.SEND, executor, data)

    def control(self, executor: int, data: bytes) -> None:
        """Send a request about calls to an executor."""
        self._add(batches.CONTROL, executor, data)

    def end(self, executor: int) -> None:
        """Let an executor end after the calls that it was sent."""
        self._add(batches.END, executor)

    def kill(self, executor: int) -> None:
        """Kill an executor, with the processes that it started."""
        self._add(batches.KILL, executor)

    def reply(self, connection: int, data: bytes) -> None:
        """Send an answer on a task's connection."""
        self._add(batches.REPLY, connection, data)

    def disconnect(self, connection: int) -> None:
        """Close a task's connection."""
        self._add(batches.DISCONNECT, connection)

    def close(self) -> None:
        """End all processes of the host."""
        self._add(batches.CLOSE, 0)

    def adopt(self, object_id: bytes) -> None:
        """Make the driver the owner of an object."""
        self._add(batches.ADOPT, 0, object_id)

    def discard(self, object_id: bytes) -> None:
        """Drop the reference of an object's owner."""
        self._add(batches.DISCARD, 0, object_id)

    def forget_copy(self, object_id: bytes) -> None:
        """Free a copy of an object that was deleted on its own host."""
        self._add(batches.FORGET_COPY, 0, object_id)

    def process_ended(self, holder: int) -> None:
        """Free what a holder had."""
        self._add(batches.HOLDER_ENDED, holder)

    def set_hosts(self, addresses: Mapping[str, str]) -> None:
        """Send the addresses of the hosts that this one may fetch from."""
        self._add(batches.HOSTS, 0, msgspec.msgpack.encode(dict(addresses)))

    def read(self, number: int, request: bytes) -> None:
        """Request a part of one of its objects."""
        self._add(batches.READ, number, request)

    def give(self, number: int, part: bytes) -> None:
        """Send a part that it has requested."""
        self._add(batches.GIVE, number, part)

    def write_summary(self, summary: bytes) -> None:
        """Replace the summary of the context."""
        self._add(batches.SUMMARY, 0, summary)

    def take(self) -> list[Operation]:
        """Return the operations that were not sent."""
        operations, self._operations = self._operations, []
        return operations

    def deliver(self, operations: list[Operation]) -> None:
        """Send operations. An agent that has ended gets nothing: its silence is noticed."""
        try:
            self._agent.deliver_batch.broadcast(batches.encoded(operations))
        except Exception as error:  # noqa: BLE001 - of Monarch, which has many
            log.debug("%s does not take operations: %s", self.description.name, error)

    def handle(self, reports: list[Operation]) -> None:
        """Handle the reports of the agent. One that was declared lost is not obeyed."""
        if self.is_lost:
            return
        self.silence.hear(time.monotonic())
        for report, number, data in reports:
            self._handle(report, number, data)

    def _handle(self, report: int, number: int, data: bytes) -> None:
        if report == batches.CALLS:
            self.events.on_calls(number, data)
        elif report == batches.ENDED:
            self.events.on_ended(number, int(data))
        elif report == batches.REQUEST:
            self.events.on_request(number, data)
        elif report == batches.DISCONNECTED:
            self.events.on_disconnected(number)
        elif report == batches.WANTED:
            self.router.request(data, partial(self.give, number))
        elif report == batches.PART:
            self.router.on_part(number, data)
        else:
            self.is_closed = True

    def _add(self, operation: int, number: int, data: bytes = b"") -> None:
        if not self.is_lost:
            self._operations.append((operation, number, data))
            self._wake()


class RemoteHosts:
    """All hosts of one context, and the threads that send and receive for them."""

    def __init__(
        self, mesh: Any, loop: Loop, objects: HostObjects, settings: AgentSettings
    ) -> None:
        """Start an agent on each host. ContextError: they do not start.

        `objects` is the object store of the driver; those of the hosts have the `settings`.
        """
        import monarch.actor  # noqa: PLC0415 - for contexts on hosts alone

        self._loop = loop
        self._objects = objects
        self._has_work = threading.Event()
        self._has_ended = False
        # Part of all names on the hosts: what has it in a report of Monarch is an agent's.
        self._name = f"task_context_{secrets.token_hex(8)}"
        self._reach = Reach()
        settings = msgspec.structs.replace(settings, driver_silence_s=self._reach.driver_silence_s)
        AGENT_FAULTS.take(monarch.actor, self._name, self._reach.note_fault)
        self._port, self._receiver = monarch.actor.Channel.open()
        encoded = msgspec.msgpack.encode(settings)
        self._procs, agents = _spawned_agents(mesh, self._name, self._port, encoded)
        self.hosts = [RemoteHost(each, agent, self._has_work.set) for each, agent in agents]
        self._part_server = PartServer(objects.store)
        self._router = Router(self._part_server, loop.run)
        for host in self.hosts:
            host.router = self._router
            self._router.add_host(host.description.name, host)
        self._parts = PartReader(self._want, settings.driver_silence_s)
        memory = remote_memory(settings.object_transport)
        self._address = objects.join_others(own_host(), settings.secret, self._parts.read, memory)
        self._threads = [
            threading.Thread(target=target, daemon=True, name=f"task context: {name}")
            for name, target in (("sends", self._send), ("receives", self._receive))
        ]

    def start(self) -> None:
        """Begin to send and receive: all hosts have their `events`."""
        self._set_hosts()
        for thread in self._threads:
            thread.start()
        self._loop.call_later(batches.BEAT_S, self._check)

    @property
    def take_summaries(self) -> bool:
        """Whether a host has a runner that reads the summary of the context."""
        return any(host.description.takes_summaries for host in self.hosts)

    def write_summary(self, summary: bytes) -> None:
        """Replace the summary of the context, on the first host that has a runner."""
        with self._loop.lock:
            for host in self.hosts:
                if host.description.takes_summaries and not host.is_lost:
                    host.write_summary(summary)
                    return

    def close(self) -> None:
        """End the agents and their processes, and wait for that."""
        for host in self.hosts:
            host.close()
        # The thread that receives ends with the last report.
        self._threads[1].join(END_S)
        self._part_server.close()
        self._has_ended = True
        self._has_work.set()
        self._threads[0].join(END_S)
        if not any(host.is_lost for host in self.hosts):
            with suppress(Exception):
                self._procs.stop().get(timeout=END_S)
                self._restore_faults()

    def _send(self) -> None:
        while not self._has_ended:
            self._has_work.wait(batches.BEAT_S)
            self._has_work.clear()
            for host in self.hosts:
                with self._loop.lock:
                    operations = host.take()
                is_due = time.monotonic() - host.sent_at >= batches.BEAT_S
                if (operations or is_due) and not host.is_lost:
                    host.sent_at = time.monotonic()
                    host.deliver(operations)

    def _receive(self) -> None:
        while not all(host.is_closed or host.is_lost for host in self.hosts):
            rank, data = self._receiver.recv().get()
            if rank == _OWN_RANK:
                continue
            reports = batches.decoded(data)
            self._loop.run(partial(self.hosts[rank].handle, reports))

    def _check(self) -> None:
        """Report hosts whose agents are silent."""
        for host in self.hosts:
            silent_s = host.silence.lasts(time.monotonic())
            if silent_s > self._reach.host_silence_s() and not (host.is_lost or host.is_closed):
                host.is_lost = True
                # The thread that receives looks whether this was the last host.
                self._port.send((_OWN_RANK, b""))
                self._set_hosts()
                self._router.on_lost(host.description.name)
                host.events.on_lost(f"its agent has been silent for {silent_s:.1f} s")
        self._loop.call_later(batches.BEAT_S, self._check)

    def _set_hosts(self) -> None:
        """Send the addresses of all hosts to each; fetches from others end."""
        there = [host for host in self.hosts if not host.is_lost]
        addresses = {host.description.name: host.description.address for host in there}
        addresses[DRIVER] = self._address
        self._objects.set_hosts(addresses)
        for host in there:
            host.set_hosts(addresses)

    def _restore_faults(self) -> None:
        """Restore the program's hook for faults. Those of lost agents may still be reported."""
        import monarch.actor  # noqa: PLC0415

        AGENT_FAULTS.restore(monarch.actor, self._name)

    def _want(self, number: int, request: bytes) -> None:
        """Request a part for the driver's own store."""
        reply = partial(self._parts.on_part, number)
        self._loop.run(lambda: self._router.request(request, reply))


def _spawned_agents(
    mesh: Any, name: str, port: Any, settings: bytes
) -> tuple[Any, list[tuple[Description, Any]]]:
    from monarch_client.context.hosting.agent import HostAgent  # noqa: PLC0415 - imports monarch

    try:
        # The dimension has the name as well: failures of Monarch's own actors there show it.
        procs = mesh.spawn_procs(per_host={f"{name}_agents": 1}, name=f"{name}_procs")
        agents = procs.spawn(f"{name}_agents", HostAgent, port, settings).flatten("rank")
        answers = agents.describe_host.call().get(timeout=START_S)
    except Exception as error:
        raise ContextError(
            f"The agents of the task context did not start: {error}. Check that every host has "
            'the package: pip install "monarch-portal[context]".'
        ) from error
    made: list[tuple[Description, Any]] = []
    for rank, (_, data) in enumerate(answers.items()):
        found = msgspec.msgpack.decode(data, type=Description)
        taken = {each.name for each, _ in made}
        host = f"{found.name} ({rank})" if found.name in taken else found.name
        named = msgspec.structs.replace(found, name=host)
        made.append((named, agents.slice(rank=rank)))
    return procs, made
