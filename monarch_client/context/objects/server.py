"""The socket of a host's object store: one thread for each connection of a process.

The socket is in a private folder. The kernel names the process on the other end, so that no process
can speak for another one. A process that ends, however it does, is known by its pidfd: a connection
may stay open in its children.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

from monarch_client.attaching.unix_sockets import listen_in, peer_of
from monarch_client.context.objects import frames
from monarch_client.context.objects.errors import ObjectStoreError
from monarch_client.context.objects.host_store import HostStore

# The time until a descriptor may be free again.
_RETRY_S = 0.05
_SOCKET = "objects"
_BACKLOG = 128


@dataclass(eq=False)
class _Peer:
    """A process that is connected to the store."""

    pid: int
    pidfd: int
    connections: set[socket.socket] = field(default_factory=set)
    has_ended: bool = False


class StoreServer:
    """The store's end of the connections to the processes of its host."""

    def __init__(self, store: HostStore, folder: Path) -> None:
        """Listen in a private folder."""
        self.store = store
        self.address = str(folder / _SOCKET)
        self._peers: dict[int, _Peer] = {}
        self._lock = threading.Lock()
        self._listener = listen_in(folder, _SOCKET, _BACKLOG)
        self._closing = threading.Event()
        self._events = select.epoll()
        self._events.register(self._listener, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="object-store", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Accept connections, and notice the ends of processes."""
        while not self._closing.is_set():
            for descriptor, _ in self._events.poll():
                if descriptor != self._listener.fileno():
                    self._end_of(descriptor)
                elif not self._closing.is_set():
                    self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            # Too many open files: the connection waits until some are closed.
            self._closing.wait(_RETRY_S)
            return
        pid, uid, _ = peer_of(connection)
        peer = self._peer(pid) if uid == os.getuid() else None
        if peer is None:
            connection.close()
            return
        with self._lock:
            peer.connections.add(connection)
        threading.Thread(
            target=self._serve, args=(peer, connection), name=f"object-store-{pid}", daemon=True
        ).start()

    def _peer(self, pid: int) -> _Peer | None:
        """Return the process of that id, or None if it has ended."""
        # Only this thread adds and removes peers, but for `close`, which has joined it.
        if (peer := self._peers.get(pid)) is not None:
            return peer
        while not self._closing.is_set():
            try:
                peer = _Peer(pid, os.pidfd_open(pid))
            except ProcessLookupError:
                return None
            except OSError:
                # Too many open files. Without the lock: connections that end need it.
                self._closing.wait(_RETRY_S)
                continue
            with self._lock:
                self._peers[pid] = peer
            self._events.register(peer.pidfd, select.EPOLLIN)
            return peer
        return None

    def _end_of(self, pidfd: int) -> None:
        """Free what a process had."""
        with self._lock:
            peer = next(each for each in self._peers.values() if each.pidfd == pidfd)
            del self._peers[peer.pid]
            peer.has_ended = True
            self._events.unregister(pidfd)
            os.close(pidfd)
            for connection in peer.connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.store.process_ended(peer.pid)

    def _serve(self, peer: _Peer, connection: socket.socket) -> None:
        """Answer the requests of one connection until it ends."""
        with connection:
            # A process that ends amid a frame, or before it reads an answer.
            with contextlib.suppress(OSError):
                while (body := frames.receive_frame(connection)) is not None:
                    self._answer(peer, connection, frames.decode_request(body))
                    if peer.has_ended:
                        self.store.process_ended(peer.pid)
                        break
            with self._lock:
                peer.connections.discard(connection)

    def _answer(self, peer: _Peer, connection: socket.socket, request: frames.Request) -> None:
        if isinstance(request, frames.Hello):
            welcome = frames.to_frame(frames.Welcome(self.store.limit))
            socket.send_fds(connection, [welcome], [self.store.arena.descriptor])
            return
        try:
            answer = self._processed(peer.pid, request)
        except ObjectStoreError as error:
            answer = frames.to_answer(error)
        connection.sendall(frames.to_frame(answer))

    def _processed(self, pid: int, request: frames.Request) -> frames.Answer:
        """Process a request of a process; return the answer."""
        store = self.store
        match request:
            case frames.Create():
                offset = store.create(request.object_id, request.size, pid, owner=request.owner)
                return frames.Created(offset)
            case frames.Pin():
                return frames.Pinned(*store.pin(request.object_id, pid, request.source))
            case frames.Seal():
                store.seal(request.object_id, pid)
            case frames.Abort():
                store.abort(request.object_id, pid)
            case frames.Unpin():
                store.unpin(pid, request.counts)
            case frames.ChangeReferences():
                store.change_references(pid, request.changes)
        return frames.Done()

    def close(self) -> None:
        """End all connections. Memory that a process has read stays readable there."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listener.close()
        with self._lock:
            peers, self._peers = list(self._peers.values()), {}
            for peer in peers:
                os.close(peer.pidfd)
                for connection in peer.connections:
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
        self._events.close()
