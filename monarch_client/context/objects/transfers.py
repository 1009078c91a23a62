"""Objects on their way between hosts: one that sends them, and connections that receive.

Hosts connect to each other over TCP, with the mutual TLS of their Monarch if it has that. The
secret of the context keeps other programs out.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import ssl
import threading
from collections.abc import Iterable

from monarch_client.context.objects import frames
from monarch_client.context.objects.errors import ObjectStoreError
from monarch_client.context.objects.host_store import HostStore
from monarch_client.context.objects.ledger import OWNER
from monarch_client.context.objects.remote_memory import (
    LEAST_BYTES,
    PART_BYTES,
    Offers,
    RemoteMemory,
)

CONNECT_S = 3.0
# Without a byte for so long, the other host is gone.
SILENCE_S = 30.0
_CHUNK = 4 * 1024 * 1024
_BACKLOG = 64
_CERTIFICATES = ("HYPERACTOR_TLS_CERT", "HYPERACTOR_TLS_KEY", "HYPERACTOR_TLS_CA")


def tls_of_monarch(*, is_server: bool) -> ssl.SSLContext | None:
    """Return the TLS of the certificates that Monarch uses, or None if it uses none.

    Each side takes any certificate of the attempt's authority, whatever its name: a host has
    several addresses.
    """
    certificate, key, authority = (os.environ.get(name) for name in _CERTIFICATES)
    if not (certificate and authority):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    return context


class TransferServer:
    """The objects of this host, for others: one thread for each connection."""

    def __init__(
        self, store: HostStore, host: str, secret: str, memory: RemoteMemory | None
    ) -> None:
        """Listen at an address of this host. OSError: it has no such address."""
        self._store = store
        self._secret = secret
        self._offers = Offers(memory) if memory else None
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        self._listener = socket.create_server((host, 0), family=family, backlog=_BACKLOG)
        self.address = f"{host}:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        # By connection, the address of the host that has requested something on it.
        self._readers: dict[socket.socket, str] = {}
        self._hosts: set[str] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="object-transfers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all connections."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listener.close()
        self._end(self._readers)

    def set_hosts(self, addresses: Iterable[str]) -> None:
        """Replace the addresses of the hosts; end what is being sent to others, with its pins."""
        hosts = {each for each in addresses if each}
        with self._lock:
            gone, self._hosts = self._hosts - hosts, hosts
            ended = [each for each, reader in self._readers.items() if reader in gone]
        self._end(ended)

    def _end(self, connections: Iterable[socket.socket]) -> None:
        with self._lock:
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                # Too many open files: the connection waits until some are closed.
                threading.Event().wait(0.05)
                continue
            threading.Thread(
                target=self._serve, args=(connection,), name="object-transfer", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        """Send what a host requests on one connection until it ends."""
        # A host that has gone or has no right to ask; it notices that itself.
        with contextlib.suppress(OSError):
            connection.settimeout(SILENCE_S)
            tls = tls_of_monarch(is_server=True)
            wrapped = tls.wrap_socket(connection, server_side=True) if tls else connection
            with self._lock:
                self._readers[wrapped] = ""
            try:
                with contextlib.ExitStack() as held:
                    self._serve_requests(wrapped, held)
            finally:
                with self._lock:
                    del self._readers[wrapped]
                wrapped.close()
        connection.close()

    def _serve_requests(self, connection: socket.socket, held: contextlib.ExitStack) -> None:
        """Answer requests. `held` ends what the last answer has offered."""
        connection.settimeout(None)  # the next request may come much later
        while not self._is_closed and (body := frames.receive_frame(connection)) is not None:
            request = frames.decode_transfer_request(body)
            connection.settimeout(SILENCE_S)
            held.close()
            if isinstance(request, frames.Release):
                connection.sendall(frames.to_frame(frames.Done()))
            elif not hmac.compare_digest(request.secret, self._secret):
                return
            elif self._send(connection, request, held):
                continue  # its reader is expected to go on soon
            connection.settimeout(None)

    def _send(
        self, connection: socket.socket, request: frames.Fetch, held: contextlib.ExitStack
    ) -> bool:
        """Send an object, or offer its next part; return whether it is an offer."""
        with self._lock:
            self._readers[connection] = request.reader
        try:
            offset, size = self._store.pin(request.object_id, OWNER)
        except ObjectStoreError as error:
            connection.sendall(frames.to_frame(frames.to_answer(error)))
            return False
        held.callback(self._store.unpin, OWNER, {request.object_id: 1})
        if handle := self._offer(request, offset, size, held):
            connection.sendall(frames.to_frame(frames.Contents(size, handle)))
            return True
        with held:
            connection.sendall(frames.to_frame(frames.Contents(size)))
            contents = self._store.arena.mapping.view(offset, size)
            for start in range(request.start, size, _CHUNK):
                connection.sendall(contents[start : start + _CHUNK])
        return False

    def _offer(
        self, request: frames.Fetch, offset: int, size: int, held: contextlib.ExitStack
    ) -> bytes:
        """Offer the next part of an object; return its handle, or nothing: send the bytes."""
        if self._offers is None or not request.takes_offers or size - request.start < LEAST_BYTES:
            return b""
        length = min(size - request.start, PART_BYTES)
        # The network registers memory for reads and writes.
        part = self._store.arena.mapping.writable_view(offset + request.start, length)
        offer = self._offers.make(part)
        if offer is None:
            return b""
        held.callback(self._offers.end, offer)
        return offer.handle


def connect(address: str) -> socket.socket:
    """Connect to a host's `TransferServer`. OSError: there is no way to it."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=CONNECT_S)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = tls_of_monarch(is_server=False)
        wrapped = tls.wrap_socket(connection) if tls else connection
        wrapped.settimeout(SILENCE_S)
    except BaseException:
        connection.close()
        raise
    return wrapped


def receive(connection: socket.socket, target: memoryview) -> None:
    """Fill memory with what the other host sends. OSError: it stopped."""
    done = 0
    while done < target.nbytes:
        count = connection.recv_into(target[done : done + _CHUNK])
        if not count:
            raise ConnectionResetError("the connection ended before the object did")
        done += count
