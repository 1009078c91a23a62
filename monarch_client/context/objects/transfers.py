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

from monarch_client.context.objects import frames
from monarch_client.context.objects.errors import ObjectStoreError
from monarch_client.context.objects.host_store import HostStore
from monarch_client.context.objects.ledger import OWNER

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

    def __init__(self, store: HostStore, host: str, secret: str) -> None:
        """Listen at an address of this host. OSError: it has no such address."""
        self._store = store
        self._secret = secret
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        self._listener = socket.create_server((host, 0), family=family, backlog=_BACKLOG)
        self.address = f"{host}:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
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
        with self._lock:
            for connection in self._connections:
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
                self._connections.add(wrapped)
            try:
                self._serve_requests(wrapped)
            finally:
                with self._lock:
                    self._connections.discard(wrapped)
                wrapped.close()
        connection.close()

    def _serve_requests(self, connection: socket.socket) -> None:
        connection.settimeout(None)  # the next request may come much later
        while not self._is_closed and (body := frames.receive_frame(connection)) is not None:
            request = frames.decode_fetch(body)
            if not hmac.compare_digest(request.secret, self._secret):
                return
            connection.settimeout(SILENCE_S)
            self._send(connection, request.object_id)
            connection.settimeout(None)

    def _send(self, connection: socket.socket, object_id: bytes) -> None:
        try:
            offset, size = self._store.pin(object_id, OWNER)
        except ObjectStoreError as error:
            connection.sendall(frames.to_frame(frames.to_answer(error)))
            return
        try:
            connection.sendall(frames.to_frame(frames.Contents(size)))
            contents = self._store.arena.mapping.view(offset, size)
            for start in range(0, size, _CHUNK):
                connection.sendall(contents[start : start + _CHUNK])
        finally:
            self._store.unpin(OWNER, {object_id: 1})


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
