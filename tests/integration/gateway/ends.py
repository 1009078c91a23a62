"""The two ends of a gateway, for tests: a program and a head node, with `websockets`."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import suppress
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt
from tests.waiting import eventually

HELLO = {
    "python": "3.11.7",
    "torchmonarch": "0.7.0",
    "workers": [{"rank": 0, "host": "node0", "address": "service1@tls://10.0.0.5:26600"}],
    "nodes": [{"rank": 0, "host": "node0"}, {"rank": 1, "host": "node1"}],
    "meshes": {"trainers": [0]},
}
WAIT_S = 10.0


def dial(url: str, path: str, token: str, *, address: str = "", **options: Any) -> ClientConnection:
    """Open a WebSocket of the gateway at `url` (http), through a proxy if there is an address."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    opening = connect(
        f"{url.replace('http', 'ws', 1)}/gateway/v1/{path}",
        additional_headers=headers | ({"X-Forwarded-For": address} if address else {}),
        compression=None,
        ping_interval=None,
        proxy=None,
        open_timeout=WAIT_S,
        **options,
    )
    return opening.__enter__()


def raw(
    url: str, path: str, token: str, *, has_key: bool = True, address: str = ""
) -> socket.socket:
    """Return the socket of an opening request that was sent; `has_key`: whether it is valid."""
    host, _, port = url.removeprefix("http://").partition(":")
    headers = {
        "Host": host,
        "Authorization": f"Bearer {token}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
    }
    if address:
        headers["X-Forwarded-For"] = address
    if has_key:
        headers["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    lines = [f"GET /gateway/v1/{path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    opened = socket.create_connection((host, int(port)), WAIT_S)
    opened.sendall("\r\n".join([*lines, "", ""]).encode())
    return opened


def refusal(url: str, path: str, token: str) -> tuple[int, str]:
    """Return status and text of a refused request."""
    try:
        dial(url, path, token).close()
    except InvalidStatus as error:
        return error.response.status_code, (error.response.body or b"").decode()
    return 101, ""


class End:
    """A control stream."""

    def __init__(self, url: str, path: str, token: str, **options: Any) -> None:
        self.url = url
        self.stream = dial(url, path, token, **options)

    def send(self, op: str, /, **fields: Any) -> None:
        self.stream.send(json.dumps({"op": op, **fields}))

    def read(self, op: str) -> dict[str, Any]:
        """Return the next message with `op`; others are skipped."""
        while True:
            message = json.loads(self.stream.recv(WAIT_S))
            if message["op"] == op:
                return message

    def is_closed(self) -> bool:
        """Whether the gateway has closed it, within the time-out; messages are skipped."""
        try:
            while True:
                self.stream.recv(WAIT_S)
        except ConnectionClosed:
            return True
        except TimeoutError:
            return False

    def link(self, token: str, **options: Any) -> ClientConnection:
        return dial(self.url, "link", token, **options)

    def close(self) -> None:
        self.stream.close()


class Head(End):
    """The head node of an attempt; it has sent its hello."""

    def __init__(self, url: str, attempt: Attempt, **options: Any) -> None:
        super().__init__(url, "head", attempt_token(attempt.job_id, attempt.number), **options)
        self.send("hello", attempt=attempt.pk, **HELLO)


class Program(End):
    """A program with a session; it has received its welcome."""

    def __init__(self, url: str, secret: str) -> None:
        super().__init__(url, "session", secret)
        self.welcome = self.read("welcome")

    @property
    def secret(self) -> str:
        return self.welcome["secret"]

    def reaches_worker(self, generation: int) -> bool:
        """Whether the worker of rank 0 begins a TLS handshake through a new link."""
        self.send("link", link=0, generation=generation, rank=0)
        link = self.link(self.read("dial")["token"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        with suppress(ssl.SSLWantReadError):
            context.wrap_bio(received, sent).do_handshake()
        link.send(sent.read())
        handshake = 22
        return link.recv(WAIT_S)[0] == handshake


def connect_again(url: str, secret: str, timeout_s: float = 60) -> Program:
    """Connect a session again, as its program does: repeatedly, until it works."""
    found: list[Program] = []

    def has_connected() -> bool:
        with suppress(WebSocketException, OSError):
            found.append(Program(url, secret))
        return bool(found)

    assert eventually(has_connected, timeout_s=timeout_s), f"no connection within {timeout_s} s"
    assert found[0].read("mesh")
    return found[0]


def join(program: Program, head: Head, number: int = 1, generation: int = 1) -> tuple[Any, Any]:
    """Open a link and return both its ends."""
    program.send("link", link=number, generation=generation, rank=0)
    to_program, to_head = program.read("dial"), head.read("dial")
    return program.link(to_program["token"]), head.link(to_head["token"])
