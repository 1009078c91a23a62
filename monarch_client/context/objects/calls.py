"""The calls of one process to the store of its host: in the same process, or over a socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from monarch_client.attaching.unix_sockets import connect_to
from monarch_client.context.objects import frames
from monarch_client.context.objects.errors import ObjectStoreError
from monarch_client.context.objects.host_store import HostStore
from monarch_client.context.objects.ledger import OWNER
from monarch_client.context.objects.mapping import ArenaMapping

_A = TypeVar("_A", bound=frames.Answer)
_NO_STORE = "The host's object store does not answer: the process that runs it has ended."


class StoreCalls(Protocol):
    """The calls that a client makes; see the methods of `HostStore`."""

    @property
    def mapping(self) -> ArenaMapping:
        """The shared memory in this process."""

    def create(self, object_id: bytes, size: int, owner: int) -> int | None: ...

    def seal(self, object_id: bytes) -> None: ...

    def abort(self, object_id: bytes) -> None: ...

    def pin(self, object_id: bytes, source: str) -> tuple[int, int]: ...

    def unpin(self, counts: Mapping[bytes, int]) -> None: ...

    def change_references(self, changes: Mapping[bytes, int]) -> None: ...

    def close(self) -> None: ...


class DirectCalls:
    """The calls of the process that runs the store."""

    def __init__(self, store: HostStore) -> None:
        self._store = store
        self.mapping = store.arena.mapping

    def create(self, object_id: bytes, size: int, owner: int) -> int | None:
        """Return the offset for a new object, or None if it exists."""
        return self._store.create(object_id, size, OWNER, owner=owner)

    def seal(self, object_id: bytes) -> None:
        """Make an object readable."""
        self._store.seal(object_id, OWNER)

    def abort(self, object_id: bytes) -> None:
        """Free an object that could not be written."""
        self._store.abort(object_id, OWNER)

    def pin(self, object_id: bytes, source: str) -> tuple[int, int]:
        """Keep an object in memory; return its offset and size."""
        return self._store.pin(object_id, OWNER, source)

    def unpin(self, counts: Mapping[bytes, int]) -> None:
        """End pins."""
        self._store.unpin(OWNER, counts)

    def change_references(self, changes: Mapping[bytes, int]) -> None:
        """Add to numbers of references."""
        self._store.change_references(OWNER, changes)

    def close(self) -> None:
        """Leave the store as it is: it is not the client's."""


class SocketCalls:
    """The calls of another process of the host. Threads that call at once get a connection each.

    After a fork the child is a process of its own to the store: it connects anew.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._free: list[socket.socket] = []
        self._pid = os.getpid()
        connection = self._connect()
        self.mapping = _received_mapping(connection)
        self._free.append(connection)

    def _connect(self) -> socket.socket:
        try:
            return connect_to(self._address)
        except OSError as error:
            raise ObjectStoreError(_NO_STORE) from error

    @contextmanager
    def _connection(self) -> Iterator[socket.socket]:
        """Provide a connection that no other thread uses; one that failed is not used again."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._free = os.getpid(), []
            connection = self._free.pop() if self._free else None
        connection = connection or self._connect()
        try:
            yield connection
        except BaseException as error:
            # Also after an interrupt: its answer is still to come, and belongs to no request.
            connection.close()
            if isinstance(error, OSError):
                raise ObjectStoreError(_NO_STORE) from error
            raise
        with self._lock:
            self._free.append(connection)

    def _request(self, request: frames.Request, kind: type[_A]) -> _A:
        """Send a request; return its answer, which is of this kind, or raise its error."""
        with self._connection() as connection:
            connection.sendall(frames.to_frame(request))
            body = frames.receive_frame(connection)
            if body is None:
                raise ConnectionResetError
        return frames.answer_of(body, kind)

    def create(self, object_id: bytes, size: int, owner: int) -> int | None:
        """Return the offset for a new object, or None if it exists."""
        return self._request(frames.Create(object_id, size, owner), frames.Created).offset

    def seal(self, object_id: bytes) -> None:
        """Make an object readable."""
        self._request(frames.Seal(object_id), frames.Done)

    def abort(self, object_id: bytes) -> None:
        """Free an object that could not be written."""
        self._request(frames.Abort(object_id), frames.Done)

    def pin(self, object_id: bytes, source: str) -> tuple[int, int]:
        """Keep an object in memory; return its offset and size."""
        pinned = self._request(frames.Pin(object_id, source), frames.Pinned)
        return pinned.offset, pinned.size

    def unpin(self, counts: Mapping[bytes, int]) -> None:
        """End pins."""
        self._request(frames.Unpin(dict(counts)), frames.Done)

    def change_references(self, changes: Mapping[bytes, int]) -> None:
        """Add to numbers of references."""
        self._request(frames.ChangeReferences(dict(changes)), frames.Done)

    def close(self) -> None:
        """End the connections. Values that were read stay usable."""
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()


def _received_mapping(connection: socket.socket) -> ArenaMapping:
    """Map the shared memory whose descriptor the store sends."""
    try:
        connection.sendall(frames.to_frame(frames.Hello()))
        data, descriptors, _, _ = socket.recv_fds(connection, 4096, 1)
    except OSError as error:
        raise ObjectStoreError(_NO_STORE) from error
    if not descriptors:
        raise ObjectStoreError("The host's object store has refused the connection.")
    os.set_inheritable(descriptors[0], False)
    capacity = frames.answer_of(data[frames.LENGTH_BYTES :], frames.Welcome).capacity
    return ArenaMapping(descriptors[0], capacity)
