"""A session's credential is sent to a portal that has proved itself, and to no other server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from monarch_client.gateway.data_links import DataLinks
from monarch_client.gateway.dialing import Dialer, FinalRefusalError
from monarch_client.gateway.session_stream import RefusedError, SessionStream
from monarch_client.runner.delivery.portal_proof import Origin, UnprovedError, digest_of

TOKEN, SECRET = "mpu_of-the-user", "secret-of-the-session"
Dial = Callable[[], Awaitable[object]]


@pytest.fixture(autouse=True)
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set and restore the environment's proxy."""
    monkeypatch.setenv("http_proxy", "")
    for name in ("HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def received_by(key: str, use: Callable[[Dial], Awaitable[None]], proxy: str = "") -> list[str]:
    """Return what a server receives on its connections; it proves itself with `key`.

    It is the portal, or where `proxy` has the word PORT a proxy in front of it.
    """
    received: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode()
                received.append(request)
                if request.startswith("CONNECT portal.example:8000 "):
                    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                    continue
                status, body = "404 Not Found", "{}"
                if request.startswith("GET /api/v1/proof"):
                    nonce = parse_qs(urlsplit(request.split()[1]).query)["nonce"][0]
                    origin = Origin("", "127.0.0.1", 1, 0)
                    mac = origin.mac(digest_of(key), nonce)
                    status, body = "200 OK", json.dumps({**origin._asdict(), "mac": mac})
                head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write((head + body).encode())
        except asyncio.IncompleteReadError:
            writer.close()

    async def run() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            os.environ["http_proxy"] = proxy.replace("PORT", str(port))
            host = "portal.example:8000" if proxy else f"127.0.0.1:{port}"
            dialer = Dialer(f"http://{host}", TOKEN)
            await use(lambda: dialer.dial_proved("/gateway/v1/session", SECRET))

    asyncio.run(asyncio.wait_for(run(), 20))
    return received


def test_a_server_without_a_proof_gets_no_credential() -> None:
    async def use(dial: Dial) -> None:
        with pytest.raises(UnprovedError, match="its proof is wrong"):
            await dial()

    (request,) = received_by("another key", use)
    assert SECRET not in request
    assert TOKEN not in request


def test_a_proved_portal_gets_the_credential_on_the_same_connection() -> None:
    async def use(dial: Dial) -> None:
        with pytest.raises(InvalidStatus):
            await dial()

    proof, upgrade = received_by(TOKEN, use)
    assert SECRET not in proof
    assert f"Bearer {SECRET}" in upgrade


def test_a_portal_behind_a_proxy_proves_itself_through_it() -> None:
    async def use(dial: Dial) -> None:
        with pytest.raises(InvalidStatus):
            await dial()

    connect, proof, upgrade = received_by(TOKEN, use, "http://ada:secret%21@127.0.0.1:PORT")
    assert "Proxy-Authorization: Basic YWRhOnNlY3JldCE=" in connect
    assert proof.startswith("GET /api/v1/proof")
    assert f"Bearer {SECRET}" in upgrade
    assert TOKEN not in connect + proof + upgrade


def test_a_proxy_that_cannot_show_the_portals_proof_is_refused() -> None:
    async def use(dial: Dial) -> None:
        with pytest.raises(UnprovedError, match="NO_PROXY"):
            await dial()

    assert received_by(TOKEN, use, "socks5://127.0.0.1:PORT") == []


class RefusingDialer(Dialer):
    """A dialer whose portal has forgotten the link, since its worker refused it."""

    async def dial(self, *_args: object) -> NoReturn:
        raise FinalRefusalError("the worker of rank 0 does not accept")


class Stream:
    """A session's stream that answers each request."""

    async def request(self, _op: str, **_fields: object) -> dict[str, object]:
        return {"token": "t"}


def test_a_link_that_is_refused_at_once_is_a_refusal_with_its_reason(tmp_path: Path) -> None:
    links = DataLinks(RefusingDialer("http://portal"), cast("SessionStream", Stream()), tmp_path, 0)
    with pytest.raises(RefusedError, match="of rank 0 does not accept"):
        asyncio.run(links.probe())
