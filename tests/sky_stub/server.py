"""The server: HTTP, access, and the planned faults of answers."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.sky_stub import portal_routes, wire
from tests.sky_stub.autostop import watch
from tests.sky_stub.cloud import Cloud
from tests.sky_stub.disk import write_json
from tests.sky_stub.errors import SkyError
from tests.sky_stub.plan import Fault
from tests.sky_stub.requests import Request, Requests
from tests.sky_stub.streams import job_log, request_log
from tests.sky_stub.uploads import Uploads
from tests.sky_stub.verbs import Verbs, error_of

REFUSAL = {"detail": "This SkyPilot server takes requests with its token."}
# Where the path is not "/" and the verb.
PATHS = {"/api/cancel": "api_cancel"}
ANSWER_FAULTS = ("late", "unavailable", "drop", "lose")
LATE_S = 6.0


class Stub(ThreadingHTTPServer):
    """One server over one folder of state."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, state: Path, token: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token = token
        self.cloud = Cloud(state)
        self.requests = Requests()
        self.verbs = Verbs(self.cloud, self.requests)
        self.uploads = Uploads(state)
        for name in self.cloud.names():
            # The server that launched these has died.
            row = self.cloud.find(name)
            if row is not None and row["status"] == "INIT" and not row["dead_nodes"]:
                self.cloud.interrupt(name)
        threading.Thread(target=watch, args=(self.cloud,), daemon=True).start()
        write_json(state / "server.json", {"port": self.server_address[1]})
        self.cloud.witness.note("serving")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections: clients may hang up at any time."""


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: Stub

    def do_GET(self) -> None:
        """Handle a GET request."""
        self._handle("GET")

    def do_POST(self) -> None:
        """Handle a POST request."""
        self._handle("POST")

    def log_message(self, *_: Any) -> None:
        """Log nothing: the events record more."""

    def _handle(self, method: str) -> None:
        url = urlsplit(self.path)
        self.query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        raw = self._read_body()
        self.request_id = Request("").id
        if not self._may_pass(url.path):
            return self._json(401, REFUSAL)
        body = self._parsed(raw)
        verb = PATHS.get(url.path, url.path.rpartition("/")[2])
        fault = self.server.cloud.plan.take(ANSWER_FAULTS, verb, str(body.get("cluster_name", "")))
        if fault.get("do") == "unavailable":
            return self._json(503, {"detail": fault.get("message", "planned")})
        if fault.get("do") == "drop" and not fault.get("taken", True):
            return self._hang_up()
        self.fault: Fault = fault
        return self._answer(method, url.path, verb, raw)

    def _answer(self, method: str, path: str, verb: str, raw: bytes) -> None:
        own = portal_routes.ROUTES.get((method, path))
        known: dict[str, Callable[[bytes], None]] = {
            "/api/health": lambda _: self._json(200, wire.health()),
            "/api/get": self._get,
            "/api/status": self._status,
            "/api/stream": self._stream,
            "/upload_v2/blob": self._has_blob,
            "/upload_v2": self._upload,
            "/validate": self._validate,
            "/logs": self._logs,
        }
        if own is not None:
            self._json(200, own(self.server.cloud, self._parsed(raw)))
        elif path in known:
            known[path](raw)
        elif verb in self.server.verbs.all:
            self._begin(verb, {**self.query, **self._parsed(raw)})
        else:
            self._json(404, {"detail": "Not Found"})

    def _begin(self, verb: str, body: dict[str, Any]) -> None:
        """Accept a request and answer with its id."""
        request = Request(verb, str(body.get("cluster_name", "")), self.request_id)
        if self.fault.get("do") != "lose":
            self.server.requests.begin(request, lambda one: self.server.verbs.work(one, body))
        self._json(200, None)

    def _get(self, _: bytes) -> None:
        """Wait for a request's end."""
        request = self.server.requests.find(self.query["request_id"])
        if request is None:
            return self._json(404, {"detail": f"Request {self.query['request_id']!r} not found"})
        while not request.is_done.wait(0.05):
            if self.server.requests.find(request.id) is None or self._is_alone():
                return self._hang_up()
        payload = request.payload(readable=False)
        if request.error is not None:
            return self._json(500, {"detail": payload})
        return self._json(200, payload)

    def _status(self, _: bytes) -> None:
        values = parse_qs(urlsplit(self.path).query)
        requests = self.server.requests
        if "request_ids" in values:
            found = [each for each in map(requests.find, values["request_ids"]) if each]
        else:
            every = self.query.get("all_status", "").lower() == "true"
            found = requests.listed(self.query.get("cluster_name"), finished=every)
            found = found[: int(self.query.get("limit", len(found)))]
        self._json(200, [each.payload(readable=True) for each in found])

    def _stream(self, _: bytes) -> None:
        request = self.server.requests.find(self.query.get("request_id", ""))
        if request is None:
            return self._json(404, {"detail": "Request not found"})
        return self._send_stream(request_log(request), {"X-SkyPilot-Stream-Request-ID": request.id})

    def _logs(self, raw: bytes) -> None:
        body = self._parsed(raw)
        selection = (body["cluster_name"], body.get("job_id"), body.get("tail") or 0)
        pieces = job_log(self.server.cloud, *selection, bool(body.get("follow", True)))
        request = Request("logs", body["cluster_name"], self.request_id, status="RUNNING")
        ended = threading.Event()
        self.server.requests.begin(request, lambda one: _code(one, ended))
        cut = self.server.cloud.plan.take(("cut",), "logs", body["cluster_name"])
        try:
            self._send_stream(_until(pieces, request), {}, cut.get("bytes"))
        finally:
            ended.set()

    def _validate(self, _: bytes) -> None:
        fault = self.server.cloud.plan.take(("error",), "validate")
        if fault:
            return self._json(400, {"detail": error_of(fault).to_dict()})
        return self._json(200, None)

    def _has_blob(self, _: bytes) -> None:
        self._json(200, {"exists": self.server.uploads.exists(self.query["blob_id"])})

    def _upload(self, raw: bytes) -> None:
        chunk = (int(self.query["chunk_index"]), int(self.query["total_chunks"]))
        self._json(200, self.server.uploads.take(self.query["upload_id"], *chunk, raw))

    def _may_pass(self, path: str) -> bool:
        token, given = self.server.token, self.headers.get("Authorization")
        if token is None or (given is None and path == "/api/health"):
            return True
        return given == f"Bearer {token}"

    def _parsed(self, raw: bytes) -> dict[str, Any]:
        is_json = "json" in self.headers.get("Content-Type", "")
        return dict(json.loads(raw)) if raw and is_json else {}

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _json(self, status: int, data: Any) -> None:
        """Answer, unless the plan has a fault for the answer."""
        fault = getattr(self, "fault", {})
        self.fault = {}
        if fault.get("do") == "late":
            time.sleep(fault.get("seconds", LATE_S))
        if fault.get("do") == "drop":
            return self._hang_up()
        body = json.dumps(data).encode()
        self._begin_answer(status, {"Content-Length": str(len(body))})
        self.wfile.write(body)
        return None

    def _begin_answer(self, status: int, more: dict[str, str]) -> None:
        self.send_response(status)
        own = {
            "Content-Type": "application/json",
            "X-Skypilot-Request-ID": self.request_id,
            "X-SkyPilot-API-Version": wire.versions()["api_version"],
            "X-SkyPilot-Version": wire.versions()["version"],
        }
        for name, value in {**own, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_stream(
        self, pieces: Iterator[bytes], more: dict[str, str], cut: int | None = None
    ) -> None:
        more = {"Content-Type": "text/plain; charset=utf-8", "Transfer-Encoding": "chunked", **more}
        self._begin_answer(200, more)
        sent = 0
        for piece in pieces:
            if not piece and self._is_alone():
                return self._hang_up()
            part = piece if cut is None else piece[: cut - sent]
            if part:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                sent += len(part)
            if cut is not None and sent >= cut:
                return self._hang_up()
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _is_alone(self) -> bool:
        """Whether the client has hung up."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _until(pieces: Generator[bytes, None, int], request: Request) -> Iterator[bytes]:
    """Yield the pieces, and store how they ended in the request."""
    try:
        request.value = yield from pieces
    except SkyError as error:
        request.error = error


def _code(request: Request, ended: threading.Event) -> Any:
    """Wait for the stream of a log to end, and return or raise what ended it."""
    while not ended.wait(0.02):
        request.wait(0)
    if request.error is not None:
        raise request.error
    return request.value
