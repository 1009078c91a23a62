"""A stand-in for a mesh admin of Monarch's: nodes to order, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

GONE = (404, {"error": {"code": "not_found", "message": "timed out querying proc mesh agent"}})
LATE = (504, {"error": {"code": "gateway_timeout", "message": "no answer in 3 s"}})


class StandInAdmin:
    """`answers` are status and content by reference; all other references are not found."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.requested: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections, and close those that there are."""
        self._server.shutdown()
        self._server.server_close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connections that there are."""
        with self._lock:
            for each in self._connections:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def node(self, reference: str, kind: str, children: list[str], **properties: Any) -> None:
        """Have a node answer."""
        content = {"identity": reference, "properties": {kind: properties}, "children": children}
        self.answers[reference] = (200, content)

    def mesh(self, hosts: dict[str, dict[str, list[str]]]) -> None:
        """Have hosts with procs with actors answer, all of them well."""
        self.node("root", "Root", list(hosts))
        for host, procs in hosts.items():
            self.node(host, "Host", list(procs), addr=host.rpartition("@")[2])
            for proc, actors in procs.items():
                self.node(proc, "Proc", actors, is_poisoned=False, failed_actor_count=0)
                for actor in actors:
                    status = {"actor_status": "idle", "actor_type": "a::Probe"}
                    self.node(actor, "Actor", [], **status, messages_processed=1)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        admin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                with admin._lock:
                    admin._connections.add(self.connection)

            def handle(self) -> None:
                with suppress(ConnectionError):
                    super().handle()

            def finish(self) -> None:
                with admin._lock:
                    admin._connections.discard(self.connection)
                super().finish()

            def do_GET(self) -> None:
                with admin._lock:
                    admin.at_once += 1
                    admin.most_at_once = max(admin.most_at_once, admin.at_once)
                reference = unquote(self.path.removeprefix("/v1/"))
                admin.requested.append(reference)
                status, content = admin.answers.get(reference, GONE)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                with admin._lock:
                    admin.at_once -= 1
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args: Any) -> None:
                """Stay silent."""

        return Handler
