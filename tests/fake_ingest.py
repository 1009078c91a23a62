"""A portal that only takes frames: stores and acknowledges them, or misbehaves to order."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from monarch_client.runner.delivery.portal_proof import Origin, digest_of

Frame = dict[str, Any]

# As in `jobs.errors`.
STATUS_OF_CODE = {
    "invalid_frame": 400,
    "not_authenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "attempt_closed": 410,
}


class FakeIngest:
    """Frames by (rank, seq), each stored once.

    `faults` are statuses answered before storing, as a proxy does; `refusals` problems of the
    portal's own, by code.
    """

    def __init__(self, token: str = "secret-token", port: int = 0) -> None:
        self.token = token
        self.frames: list[Frame] = []
        # Of hosts: they have no numbers.
        self.samples: list[Frame] = []
        # Of meshes: neither.
        self.trees: list[Frame] = []
        # Of task contexts: neither.
        self.tasks: list[Frame] = []
        self.faults: list[int] = []
        self.refusals: list[str] = []
        # Archives of code by tree, in the order of their arrival.
        self.codes: dict[str, bytes] = {}
        # The answer's request to end the attempt.
        self.orders: dict[str, float] | None = None
        # The stack dumps that an answer requests.
        self.stacks: list[dict[str, Any]] = []
        # Whether an answer requests the node to connect to the gateway.
        self.wants_gateway = False
        # The port of a gateway, to which requests for WebSockets are passed on.
        self.gateway_port: int | None = None
        self.lost_answers = 0
        self.delay_s = 0.0
        self.refuse: Callable[[Frame], bool] = lambda _frame: False
        self.requests: list[int] = []
        self.duplicates = 0
        self.holes: list[tuple[int, int]] = []
        self._highest: dict[int, int] = {}
        self._changed = threading.Condition()
        self._port = port
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Begin to listen, after `stop` at the same port."""
        self._server = _Server(("127.0.0.1", self._port), self._handler())
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def move(self) -> None:
        """Stop, and start again at another port."""
        self.stop()
        self._port = 0
        self.start()

    def stop(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def wait_for(self, condition: Callable[[], Any], seconds: float = 30.0) -> None:
        """Wait until the frames fulfil `condition`."""
        with self._changed:
            if not self._changed.wait_for(condition, seconds):
                message = f"not in {seconds} s; last frames: {self.frames[-12:]}"
                raise AssertionError(message)

    def of_kind(self, kind: str, rank: int | None = None) -> list[Frame]:
        return [
            frame
            for frame in list(self.frames)
            if frame["kind"] == kind and rank in (None, frame["rank"])
        ]

    def texts(self, stream: str = "stdout", rank: int | None = None) -> list[str]:
        return [frame["text"] for frame in self.of_kind("line", rank) if frame["stream"] == stream]

    @property
    def end(self) -> Frame:
        """The end frame, waited for."""
        self.wait_for(lambda: self.of_kind("end"))
        return self.of_kind("end")[0]

    def take_from(self, credential: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Check the token, then handle the request."""
        if credential != f"Bearer {self.token}":
            return _refusal("permission_denied")
        return self.take(body)

    def take(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Handle one request and return status and answer."""
        with self._changed:
            self.requests.append(len(body))
            self._changed.notify_all()
            if self.faults:
                return self.faults.pop(0), {}
            if self.refusals:
                return _refusal(self.refusals.pop(0))
            batch = [json.loads(line) for line in body.splitlines()]
            if any(self.refuse(frame) for frame in batch):
                return _refusal("invalid_frame", "a frame I do not like")
            for frame in batch:
                self._store(frame)
            self._changed.notify_all()
            answer: dict[str, Any] = {
                "acked": {str(rank): seq for rank, seq in self._highest.items()}
            }
            if self.stacks:
                answer["stacks"] = self.stacks
            if self.wants_gateway:
                answer["gateway"] = True
            return 200, answer if self.orders is None else {**answer, "stop": self.orders}

    def take_code(self, path: str, credential: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Store the code of a head node, or refuse it."""
        with self._changed:
            self._changed.notify_all()
            if self.faults:
                return self.faults.pop(0), {}
            if self.refusals:
                return _refusal(self.refusals.pop(0), "not like this")
            if credential != f"Bearer {self.token}":
                return _refusal("permission_denied")
            self.codes[parse_qs(urlsplit(path).query)["tree"][0]] = body
            return 200, {}

    def proof(self, path: str) -> dict[str, Any]:
        """Return the answer of a portal that knows the token to a request for proof."""
        nonce = parse_qs(urlsplit(path).query)["nonce"][0]
        origin = Origin(machine="", address="127.0.0.1", port=self._port, uid=os.geteuid())
        return {**origin._asdict(), "mac": origin.mac(digest_of(self.token), nonce)}

    def pass_on(self, request: BaseHTTPRequestHandler) -> bool:
        """Pass a request for a WebSocket on to the gateway, if there is one."""
        if "Upgrade" not in request.headers or self.gateway_port is None:
            return False
        request.close_connection = True
        relay(request, self.gateway_port)
        return True

    def _store(self, frame: Frame) -> None:
        if frame["kind"] == "metrics":
            self.samples.append(frame)
            return
        if frame["kind"] == "mesh":
            self.trees.append(frame)
            return
        if frame["kind"] == "tasks":
            self.tasks.append(frame)
            return
        rank, seq = frame["rank"], frame["seq"]
        expected = self._highest.get(rank, 0) + 1
        if seq < expected:
            self.duplicates += 1
            return
        if seq > expected:
            self.holes.append((rank, seq))
        self._highest[rank] = seq
        self.frames.append({**frame, "received": time.time()})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        ingest = self

        class Handler(_Handler):
            def do_GET(self) -> None:
                if not ingest.pass_on(self):
                    self.answer(200, ingest.proof(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                time.sleep(ingest.delay_s)
                status, answer = ingest.take_from(self.headers["Authorization"], body)
                if ingest.lost_answers and status == 200:
                    ingest.lost_answers -= 1
                    self.close_connection = True
                    return
                self.answer(status, answer)

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(*ingest.take_code(self.path, self.headers["Authorization"], body))

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status: int, answer: dict[str, Any]) -> None:
        """Answer with JSON."""
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: Any) -> None:
        """Stay silent."""


def relay(request: BaseHTTPRequestHandler, port: int) -> None:
    """Pass a request and its connection on to another port of this machine."""
    client = request.connection
    head = request.raw_requestline + request.headers.as_bytes().replace(b"\n", b"\r\n")
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(head)
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    # The other direction goes on: an answer that cannot be written makes the synchronous server of
    # `websockets` drop the messages that it has just read.
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _refusal(code: str, detail: str = "") -> tuple[int, dict[str, Any]]:
    return STATUS_OF_CODE[code], {"type": f"urn:mportal:problem:{code}", "detail": detail}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A connection kept alive must die with the server, as with a real one.
    block_on_close = False

    def __init__(self, *args: Any) -> None:
        self._open: set[Any] = set()
        super().__init__(*args)

    def get_request(self) -> tuple[Any, Any]:
        request, address = super().get_request()
        self._open.add(request)
        return request, address

    def server_close(self) -> None:
        super().server_close()
        for request in self._open:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
