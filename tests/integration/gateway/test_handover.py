"""Web hands connections of the gateway over: the portal has one port, and web carries no stream."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from jobs.models import Attempt
from tests.integration.gateway.conftest import GatewayThread
from tests.integration.gateway.ends import Head, Program, join, refusal
from tests.serving import serving


def test_streams_and_links_open_at_webs_port(
    gateway: GatewayThread, attempt: Attempt, ticket: Callable[[], str]
) -> None:
    with serving() as url:
        head, program = Head(url, attempt), Program(url, ticket())
        near, far = join(program, head)
    # Web has ended, and the connections are the gateway's.
    near.send(b"x" * 300_000)
    assert far.recv(10) == b"x" * 300_000
    far.send(b"back")
    assert near.recv(10) == b"back"
    assert len(gateway.gateway.listeners.connections) == 4
    head.close()


def test_the_gateway_answers_below_the_path_of_a_proxy(
    gateway: GatewayThread, attempt: Attempt, settings: Any
) -> None:
    settings.FORCE_SCRIPT_NAME = "/portal"
    with serving() as url:
        Head(f"{url}/portal", attempt).close()
        assert refusal(f"{url}/portal", "session", "mpg_wrong")[0] == 401


def test_without_a_gateway_web_asks_to_try_again(db: None, settings: Any, tmp_path: Any) -> None:
    settings.MPORTAL_GATEWAY_SOCKET = tmp_path / "nobody"
    with serving() as url:
        assert refusal(url, "session", "mpg_any")[0] == 503


@pytest.mark.parametrize("path", ["/", "/api/v1/me", "/gatewayish/"])
def test_other_paths_open_no_websocket(db: None, path: str) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }
    with serving() as url:
        assert httpx.get(f"{url}{path}", headers=headers).status_code == 404


def test_a_connection_may_carry_requests_before_it_is_handed_over(
    gateway: GatewayThread, attempt: Attempt
) -> None:
    # As a runner does, which has the portal prove itself first.
    with serving() as url:
        address = urlsplit(url)
        connection = HTTPConnection(address.hostname, address.port, timeout=10)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
        used, connection.sock = connection.sock, None
        Head(url, attempt, sock=used).close()
