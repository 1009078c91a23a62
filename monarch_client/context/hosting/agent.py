"""The agent of one host: a Monarch actor that has the processes of a task context there.

It relays bytes between the driver and the processes, and decides nothing. Monarch carries batches
of operations and reports; a process of its own would have to find another way through networks,
certificates and gateways. It ends with the context, or when the driver is silent.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import msgspec
from monarch.actor import Actor, current_rank, endpoint

from monarch_client.context.amounts import own_gpus, own_resources
from monarch_client.context.hosting import batches
from monarch_client.context.hosting.addresses import own_host
from monarch_client.context.hosting.batches import AgentSettings, Description, Operation, Silence
from monarch_client.context.hosting.local_host import LocalHost
from monarch_client.context.hosting.loop import Loop
from monarch_client.context.hosting.rdma import remote_memory
from monarch_client.context.hosting.relay import PartReader, PartServer
from monarch_client.context.hosting.summary_file import summary_file
from monarch_client.context.objects import HostObjects


class HostAgent(Actor):  # type: ignore[misc]  # monarch has no types
    """The actor. Its endpoints have names that no mesh has."""

    def __init__(self, port: Any, settings: bytes) -> None:
        decoded = msgspec.msgpack.decode(settings, type=AgentSettings)
        self._relay = Relay(current_rank().rank, port, decoded)

    @endpoint  # type: ignore[untyped-decorator]
    def describe_host(self) -> bytes:
        """Return the resources of this host."""
        return msgspec.msgpack.encode(
            Description(
                socket.gethostname(),
                own_resources(None),
                own_gpus(),
                self._relay.address,
                takes_summaries=self._relay.summary is not None,
            )
        )

    @endpoint  # type: ignore[untyped-decorator]
    def deliver_batch(self, data: bytes) -> None:
        """Run operations of the driver."""
        self._relay.run(batches.decoded(data))


class Relay:
    """The processes of this host, its object store, and the port to the driver."""

    def __init__(self, rank: int, port: Any, settings: AgentSettings) -> None:
        self._rank = rank
        self._port = port
        self._reports: list[Operation] = []
        self._driver_silence_s = settings.driver_silence_s
        self._driver = Silence(time.monotonic())
        self._loop = Loop(self._report, self._fail)
        self._objects = HostObjects(settings.object_store_bytes, settings.spill_directory)
        store = self._objects.store
        self._changes = {
            batches.ADOPT: store.adopt,
            batches.DISCARD: store.discard,
            batches.FORGET_COPY: store.forget_copy,
        }
        self._parts = PartReader(self._want, settings.driver_silence_s)
        self._part_server = PartServer(self._objects.store)
        memory = remote_memory(settings.object_transport)
        self.address = self._objects.join_others(
            own_host(), settings.secret, self._parts.read, memory
        )
        # No driver on this node has the number of this process.
        self.summary = summary_file(f"{os.getpid()}-0")
        self._host = LocalHost(self._loop, self, self._objects.serve().address)
        self._loop.call_later(batches.BEAT_S, self._beat)
        self._loop.start()

    def run(self, operations: list[Operation]) -> None:
        """Run operations of the driver, in order."""
        with self._loop.lock:
            self._driver.hear(time.monotonic())
            for operation, number, data in operations:
                self._run(operation, number, data)
            self._report()

    def on_calls(self, executor: int, data: bytes) -> None:
        """Report what an executor sent."""
        self._reports.append((batches.CALLS, executor, data))

    def on_ended(self, executor: int, status: int) -> None:
        """Report the end of an executor."""
        self._reports.append((batches.ENDED, executor, str(status).encode()))

    def on_request(self, connection: int, data: bytes) -> None:
        """Report what a task sent."""
        self._reports.append((batches.REQUEST, connection, data))

    def on_disconnected(self, connection: int) -> None:
        """Report the end of a task's connection."""
        self._reports.append((batches.DISCONNECTED, connection, b""))

    def on_lost(self, reason: str) -> None:
        """Do nothing: this host is here."""

    def _run(self, operation: int, number: int, data: bytes) -> None:
        if operation == batches.FORK:
            self._host.fork(number, msgspec.msgpack.decode(data, type=dict[str, str]))
        elif operation == batches.END:
            self._host.end(number)
        elif operation == batches.KILL:
            self._host.kill(number)
        elif operation == batches.DISCONNECT:
            self._host.disconnect(number)
        elif operation == batches.CLOSE:
            self._host.close()
            self._part_server.close()
            self._objects.close()
            self._reports.append((batches.CLOSED, 0, b""))
        elif operation >= batches.ADOPT:
            self._change_objects(operation, number, data)
        else:
            self._send(operation, number, data)

    def _change_objects(self, operation: int, number: int, data: bytes) -> None:
        if change := self._changes.get(operation):
            change(data)
        elif operation == batches.HOLDER_ENDED:
            self._objects.store.process_ended(number)
        elif operation == batches.HOSTS:
            self._objects.set_hosts(msgspec.msgpack.decode(data, type=dict[str, str]))
        elif operation == batches.READ:
            self._part_server.answer(data, lambda part: self._tell(batches.PART, number, part))
        elif operation == batches.GIVE:
            self._parts.on_part(number, data)
        elif operation == batches.SUMMARY and self.summary:
            self.summary.write(data)

    def _want(self, number: int, request: bytes) -> None:
        self._tell(batches.WANTED, number, request)

    def _tell(self, report: int, number: int, data: bytes) -> None:
        """Send a report from another thread."""
        self._loop.run(lambda: self._reports.append((report, number, data)))

    def _send(self, operation: int, number: int, data: bytes) -> None:
        if operation == batches.SEND:
            self._host.send(number, data)
        elif operation == batches.CONTROL:
            self._host.control(number, data)
        elif operation == batches.REPLY:
            self._host.reply(number, data)

    def _report(self) -> None:
        if self._reports:
            reports, self._reports = self._reports, []
            self._port.send((self._rank, batches.encoded(reports)))

    def _beat(self) -> None:
        if self._driver.lasts(time.monotonic()) > self._driver_silence_s:
            # The driver has ended without a word; executors end with this process.
            if self.summary:
                self.summary.end()
            os._exit(1)
        self._port.send((self._rank, batches.encoded([])))
        self._loop.call_later(batches.BEAT_S, self._beat)

    def _fail(self, error: Exception) -> None:
        os._exit(1)
