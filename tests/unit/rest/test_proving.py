"""Tokens leave over plain http only after the other side has proved that it is the portal."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from monarch_client.errors import NotSignedInError, UnprovedPortalError, UnreachableError
from monarch_client.rest.client import PortalClient
from monarch_client.rest.proving import PortalProof
from monarch_client.runner.base.listening_sockets import ListeningSocket
from monarch_client.runner.delivery import portal_proof
from monarch_client.runner.delivery.portal_proof import PATH, Origin, digest_of, this_machine
from tests.fake_ca import make_authority
from tests.thief import A_STRANGER, Thief
from tests.unit.rest.fake_portal import MOMENT

TOKEN = "mpt_" + "s3cret-" * 6
ME = {
    "username": "nora", "is_admin": False, "projects": [], "token": "laptop", "read_only": False,
    "date_joined": MOMENT,
}  # fmt: skip

Answer = Callable[[str, int], tuple[int, dict[str, Any]]]


def proved(nonce: str, port: int, token: str = TOKEN) -> tuple[int, dict[str, Any]]:
    origin = Origin(this_machine(), "127.0.0.1", port, os.geteuid())
    return 200, {**origin._asdict(), "mac": origin.mac(digest_of(token), nonce)}


class Portal:
    """A real server that answers a challenge as `answer` says. `seen`: the headers of requests."""

    def __init__(self, answer: Answer = proved, headers: dict[str, str] | None = None) -> None:
        self.seen: list[tuple[str, str | None]] = []
        portal = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                portal.seen.append((urlsplit(self.path).path, self.headers["Authorization"]))
                status, body = 200, ME
                if urlsplit(self.path).path == PATH:
                    nonce = parse_qs(urlsplit(self.path).query)["nonce"][0]
                    status, body = answer(nonce, portal.port)
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args: Any) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def tokens(self) -> list[str]:
        return [token for _, token in self.seen if token]

    def encrypt(self, context: ssl.SSLContext) -> None:
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @contextmanager
    def serve(self) -> Iterator[Portal]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def ask(url: str, token: str = TOKEN) -> None:
    with PortalClient(url, token, patience_s=0) as client:
        client.connection.request("GET", "/me")


def test_a_portal_proves_itself_once_a_connection():
    with Portal().serve() as portal, PortalClient(portal.url, TOKEN) as client:
        for _ in range(2):
            client.connection.request("GET", "/me")
    assert [path for path, _ in portal.seen] == [PATH, "/api/v1/me", "/api/v1/me"]
    assert portal.seen[0] == (PATH, None)
    assert portal.tokens == [f"Bearer {TOKEN}"] * 2


UNPROVED: dict[str, tuple[Answer, str]] = {
    "an earlier version": (lambda _nonce, _port: (404, {}), "no proof .status 404"),
    "a thief": (lambda _nonce, _port: (200, {"acked": {"0": 9}}), "no proof"),
    "one with another token": (lambda nonce, port: proved(nonce, port, "mpt_other"), "is wrong"),
    "an answer of yesterday": (lambda _nonce, port: proved("0" * 32, port), "is wrong"),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_who_does_not_prove_itself_gets_no_token(name):
    answer, why = UNPROVED[name]
    with Portal(answer).serve() as portal, pytest.raises(UnprovedPortalError, match=why) as caught:
        ask(portal.url)
    assert portal.tokens == []
    assert TOKEN not in str(caught.value)


def test_a_real_thief_of_the_port_gets_no_token(tmp_path, free_port):
    with Thief(free_port, tmp_path) as thief, pytest.raises(UnprovedPortalError):
        ask(f"http://127.0.0.1:{free_port}")
    assert thief.was_called
    assert TOKEN.encode() not in thief.loot


@pytest.mark.skipif(os.geteuid() != 0, reason="it needs the process of another user")
def test_a_stranger_on_this_machine_that_passes_requests_on_gets_no_token(tmp_path, free_port):
    with (
        Portal().serve() as portal,
        Thief(free_port, tmp_path, relay_to=portal.port, uid=A_STRANGER) as thief,
        pytest.raises(UnprovedPortalError, match=f"listens on 127.0.0.1 port {portal.port}"),
    ):
        ask(f"http://127.0.0.1:{free_port}")
    assert thief.was_called
    assert portal.tokens == []


@pytest.mark.skipif(os.geteuid() != 0, reason="it needs the process of another user")
@pytest.mark.parametrize(("name", "address"), [("[::1]", "::1"), ("127.0.0.2", "127.0.0.2")])
def test_a_stranger_at_the_same_port_of_another_address_gets_no_token(tmp_path, name, address):
    # A browser's or client's `localhost` is ::1 first, and the portal listens on 127.0.0.1.
    with (
        Portal().serve() as portal,
        Thief(portal.port, tmp_path, relay_to=portal.port, uid=A_STRANGER, address=address) as it,
        pytest.raises(UnprovedPortalError, match="passes requests on"),
    ):
        ask(f"http://{name}:{portal.port}")
    assert it.was_called
    assert portal.tokens == []


def test_a_socks_proxy_gets_no_token():
    # httpx reports such connections by other names, if it can make any.
    request = httpx.Request("GET", "http://portal.example/api/v1/me")
    PortalProof("http://portal.example", TOKEN, 1.0).require(request)
    with pytest.raises(UnprovedPortalError, match="SOCKS"):
        request.extensions["trace"]("socks.connect_tcp.started", {})


def test_a_tunnel_or_proxy_of_ones_own_is_let_through(tmp_path, free_port):
    with Portal().serve() as portal, Thief(free_port, tmp_path, relay_to=portal.port):
        ask(f"http://127.0.0.1:{free_port}")
    assert portal.tokens == [f"Bearer {TOKEN}"]


def test_a_tunnel_to_another_machine_is_let_through(tmp_path, free_port, monkeypatch):
    stranger = ListeningSocket(A_STRANGER, inode="1")
    monkeypatch.setattr(portal_proof, "sockets_listening_at", lambda *_at: [stranger])
    monkeypatch.setattr(portal_proof, "this_machine", lambda: "a laptop")
    with Portal().serve() as portal, Thief(free_port, tmp_path, relay_to=portal.port):
        ask(f"http://127.0.0.1:{free_port}")
    assert portal.tokens == [f"Bearer {TOKEN}"]


def test_a_token_that_the_portal_does_not_know_is_not_sent():
    with Portal(lambda _nonce, _port: (401, {})).serve() as portal:
        with pytest.raises(NotSignedInError, match="does not know this token"):
            ask(portal.url)
        assert portal.tokens == []


def test_a_portal_that_is_away_is_tried_again():
    answers = [lambda _nonce, _port: (503, {}), proved]

    def answer(nonce: str, port: int) -> tuple[int, dict[str, Any]]:
        return answers.pop(0)(nonce, port)

    with (
        Portal(answer).serve() as portal,
        PortalClient(portal.url, TOKEN, sleep=lambda _s: None) as client,
    ):
        client.connection.request("GET", "/me")
    assert portal.tokens == [f"Bearer {TOKEN}"]


def test_https_to_a_portal_of_http_is_reported_at_once():
    pauses: list[float] = []
    portal = Portal()
    with (
        portal.serve(),
        PortalClient(portal.url.replace("http:", "https:"), TOKEN, sleep=pauses.append) as client,
        pytest.raises(UnreachableError, match=f"use {portal.url}"),
    ):
        client.connection.request("GET", "/me")
    assert pauses == []


def test_http_to_a_portal_of_https_is_reported_at_once(encrypted):
    with encrypted.serve(), pytest.raises(UnprovedPortalError, match="use https://"):
        ask(encrypted.url)
    assert encrypted.seen == []


def test_http_to_a_portal_behind_https_is_reported_at_once():
    moved = {"Location": "https://portal.example/api/v1/proof"}
    portal = Portal(lambda _nonce, _port: (301, {}), moved)
    with portal.serve(), pytest.raises(UnprovedPortalError, match="over https:// only"):
        ask(portal.url)
    assert portal.tokens == []


@pytest.fixture
def encrypted(tmp_path) -> Portal:
    authority = make_authority()
    (tmp_path / "both.pem").write_text(authority["ca_cert"] + authority["ca_key"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    portal = Portal()
    portal.encrypt(context)
    return portal


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
