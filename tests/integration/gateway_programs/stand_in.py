"""A stand-in for the portal's gateway and a job's head: the peers of a laptop's link process.

It speaks the protocol of docs/explanation/gateway.md on one port, and can be cut off.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

T = TypeVar("T")
CHUNK = 256 * 1024


class StandIn:
    """A gateway whose one job has `workers`: hello is sent to every session."""

    def __init__(self, authority: dict[str, str], hello: dict[str, Any], head: tuple[str, int]):
        self.authority, self.hello, self.head = authority, hello, head
        self.ticket = secrets.token_hex(8)
        self.away_limit_s, self.leaf_s = 300.0, 3600.0
        # What the link process sent, in order.
        self.requests: list[dict[str, Any]] = []
        self.refusal: HTTPStatus | None = None
        self.are_streams_mute = False
        self._accepted = {self.ticket}
        self._tokens: dict[str, tuple[int, int]] = {}
        self._links: dict[int, tuple[int, asyncio.StreamWriter]] = {}
        self._connections: set[ServerConnection] = set()
        self._session: ServerConnection | None = None
        self._server: Server | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.restore()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def restore(self) -> None:
        """Listen, as a portal does whose network is back."""
        self._call(self._listen())

    def cut(self) -> None:
        """Close every connection, both ends of links included, and accept none."""
        self._call(self._cut())

    def cut_for(self, seconds: float) -> None:
        """Cut, and restore later without waiting."""
        self.cut()
        threading.Timer(seconds, self.restore).start()

    def renew_ticket(self) -> None:
        """Accept the ticket once more."""
        self._accepted.add(self.ticket)

    def send(self, **message: Any) -> None:
        """Send a message to the session."""
        self._call(self._send(message))

    def close(self) -> None:
        """End all of it."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await serve(
            self._connected,
            "127.0.0.1",
            self.port,
            compression=None,
            ping_interval=None,
            process_request=self._admit,
            max_size=1 << 20,
        )

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close(close_connections=False)
        for connection in self._connections:
            connection.transport.abort()
        for _, writer in self._links.values():
            writer.transport.abort()

    def _admit(self, connection: ServerConnection, request: Any) -> Any:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.refusal is not None:
            return connection.respond(self.refusal, json.dumps({"detail": "no such session"}))
        if bearer not in self._accepted and bearer not in self._tokens:
            return connection.respond(HTTPStatus.UNAUTHORIZED, json.dumps({"detail": "unknown"}))
        return None

    async def _connected(self, connection: ServerConnection) -> None:
        self._connections.add(connection)
        try:
            if connection.request.path == "/gateway/v1/session":
                await self._serve_session(connection)
            else:
                bearer = connection.request.headers["Authorization"].removeprefix("Bearer ")
                await self._serve_link(connection, *self._tokens.pop(bearer))
        except ConnectionClosed:
            pass
        finally:
            self._connections.discard(connection)

    async def _serve_session(self, stream: ServerConnection) -> None:
        self._session = stream
        secret = secrets.token_hex(8)
        # A ticket is valid once; the last secret until its successor was used.
        bearer = stream.request.headers["Authorization"].removeprefix("Bearer ")
        self._accepted = {secret} if bearer == self.ticket else {secret, bearer}
        welcome = {"op": "welcome", "session": 7, "secret": secret}
        await self._send({**welcome, "away_limit_s": self.away_limit_s})
        await self._send({"op": "mesh", **self.hello})
        async for text in stream:
            message = json.loads(text)
            self.requests.append(message)
            if message["op"] == "close":
                return
            await self._send(self._answer(message))

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["op"] == "sign":
            leaf = sign(self.authority, message["csr"], self.leaf_s)
            signed = {"leaf": leaf, "ca": self.authority["ca_cert"]}
            not_after = time.time() + self.leaf_s
            return {"op": "signed", "id": message["id"], **signed, "not_after": not_after}
        token = secrets.token_hex(8)
        self._tokens[token] = (message["link"], message["generation"])
        return {
            "op": "dial", "link": message["link"], "generation": message["generation"],
            "token": token,
        }  # fmt: skip

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._session is not None
        await self._session.send(json.dumps(message))

    async def _serve_link(self, remote: ServerConnection, link: int, generation: int) -> None:
        former = self._links.get(link)
        if former is not None:
            # As the head does: a worker serves one connection of a link.
            assert former[0] < generation, "generations grow"
            former[1].transport.abort()
        try:
            reader, writer = await asyncio.open_connection(*self.head)
        except ConnectionRefusedError:
            await remote.close(1011, "connection refused")
            return
        self._links[link] = generation, writer
        up = asyncio.create_task(_to_worker(remote, writer))
        down = asyncio.create_task(_from_worker(reader, remote))
        try:
            await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
        finally:
            remote.transport.abort()
            writer.transport.abort()
            await asyncio.gather(up, down, return_exceptions=True)


async def _to_worker(remote: ServerConnection, writer: asyncio.StreamWriter) -> None:
    async for data in remote:
        writer.write(data)
        await writer.drain()


async def _from_worker(reader: asyncio.StreamReader, remote: ServerConnection) -> None:
    while data := await reader.read(CHUNK):
        await remote.send(data)


def sign(authority: dict[str, str], csr: str, seconds: float) -> str:
    """Sign a client's certificate as the head's runner does."""
    request = x509.load_pem_x509_csr(csr.encode())
    issuer = x509.load_pem_x509_certificate(authority["ca_cert"].encode())
    key = serialization.load_pem_private_key(authority["ca_key"].encode(), None)
    now = datetime.now(UTC)
    leaf = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "laptop 7")]))
        .issuer_name(issuer.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=10))
        .not_valid_after(now + timedelta(seconds=seconds))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return leaf.public_bytes(serialization.Encoding.PEM).decode()
