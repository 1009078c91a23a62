"""Copies of other hosts' objects: each is fetched once, however many processes wait for it."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping

import msgspec

from monarch_client.context.objects import frames, transfers
from monarch_client.context.objects.errors import (
    ObjectNotFoundError,
    ObjectUnreachableError,
)
from monarch_client.context.objects.host_store import HostStore
from monarch_client.context.objects.ledger import OWNER
from monarch_client.context.objects.receiving import Receiver
from monarch_client.context.objects.remote_memory import Reads, RemoteMemory

log = logging.getLogger("monarch_client.context")
RELAYED_BYTES = 2 * 1024 * 1024

# Returns the size of an object of a host, and its bytes from an offset: at most `RELAYED_BYTES`.
Relay = Callable[[str, bytes, int], tuple[int, bytes]]


class Fetcher:
    """The way from other hosts, by their names, to the store of this host.

    An object is read from the memory of its host if both hosts have RDMA. Otherwise its bytes come
    over a connection, or through the relay from a host that cannot be connected to.
    """

    def __init__(
        self,
        store: HostStore,
        secret: str,
        relay: Relay,
        own_address: str = "",
        memory: RemoteMemory | None = None,
    ) -> None:
        self._store = store
        self._request = frames.Fetch(secret, b"", reader=own_address)
        self._relay = relay
        self._reads = Reads(memory) if memory else None
        # Hosts whose memory could not be read.
        self._unread: set[str] = set()
        self._lock = threading.Lock()
        self._addresses: dict[str, str] = {}
        # Idle connections by host; the host of each connection in use; what is being fetched.
        self._free: dict[str, list[socket.socket]] = {}
        self._used: dict[socket.socket, str] = {}
        self._running: dict[bytes, threading.Event] = {}

    def set_hosts(self, addresses: Mapping[str, str]) -> None:
        """Replace the addresses of the hosts; end what is being fetched from others."""
        with self._lock:
            self._addresses = dict(addresses)
            gone = [name for name in self._free if name not in addresses]
            for connection in [each for name in gone for each in self._free.pop(name)]:
                connection.close()
            for connection, name in self._used.items():
                if name not in addresses:
                    # Wakes the thread that uses it, which closes it.
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)

    def fetch(self, object_id: bytes, source: str) -> None:
        """Copy an object into this store, or wait for another thread that does, successful or not.

        ObjectUnreachableError: the host does not send it.
        """
        with self._lock:
            running = self._running.get(object_id)
            if running is None:
                mine = self._running[object_id] = threading.Event()
        if running is not None:
            running.wait()
            return
        try:
            self._copy(object_id, source)
        finally:
            with self._lock:
                del self._running[object_id]
            mine.set()

    def close(self) -> None:
        """End all connections."""
        self.set_hosts({})

    def _copy(self, object_id: bytes, source: str) -> None:
        if self._store.contains(object_id):
            return  # another thread has just fetched it
        try:
            connection = self._connection(source)
            if connection is None:
                self._copy_relayed(object_id, source)
            else:
                self._copy_sent(object_id, connection, source)
        except ObjectNotFoundError as error:
            raise ObjectUnreachableError(object_id, source, "it is not there any more") from error
        except OSError as error:
            raise ObjectUnreachableError(object_id, source, str(error)) from error

    def _copy_sent(self, object_id: bytes, connection: socket.socket, source: str) -> None:
        reads = None if source in self._unread else self._reads
        request = msgspec.structs.replace(self._request, object_id=object_id)
        receiver = Receiver(connection, request, reads)
        try:
            self._write(object_id, receiver.begin(), receiver.fill)
        except BaseException:
            # The rest of an answer may follow: it belongs to no other request.
            self._end(connection)
            raise
        if receiver.reads is not reads:
            self._unread.add(source)
        with self._lock:
            del self._used[connection]
            # A host that was lost meanwhile has closed it: the next fetch fails at once.
            self._free.setdefault(source, []).append(connection)

    def _copy_relayed(self, object_id: bytes, source: str) -> None:
        size, first = self._relay(source, object_id, 0)

        def fill(target: memoryview) -> None:
            target[: len(first)] = first
            done = len(first)
            while done < size:
                _, part = self._relay(source, object_id, done)
                target[done : done + len(part)] = part
                done += len(part)

        self._write(object_id, size, fill)

    def _write(self, object_id: bytes, size: int, fill: Callable[[memoryview], None]) -> None:
        """Add a copy, whose memory `fill` writes."""
        offset = self._store.create(object_id, size, OWNER, is_copy=True)
        if offset is None:
            raise AssertionError  # only this thread fetches it, and no process of this host made it
        try:
            mapping = self._store.arena.mapping
            mapping.populate(offset, size)
            fill(mapping.writable_view(offset, size))
            self._store.seal(object_id, OWNER)
        except BaseException:
            self._store.abort(object_id, OWNER)
            raise

    def _connection(self, source: str) -> socket.socket | None:
        """Return a connection to a host that no other thread uses; None: use the relay."""
        with self._lock:
            address = self._addresses.get(source)
            if free := self._free.get(source):
                connection = free.pop()
                self._used[connection] = source
                return connection
        if not address:
            return None
        try:
            connection = transfers.connect(address)
        except OSError as error:
            log.info("%s is fetched from through the driver: %s: %s", source, address, error)
            with self._lock:
                if self._addresses.get(source) == address:
                    self._addresses[source] = ""
            return None
        with self._lock:
            self._used[connection] = source
        return connection

    def _end(self, connection: socket.socket) -> None:
        with self._lock:
            del self._used[connection]
        connection.close()
