"""Serve Monarch's mesh admin. Run as a script: `serve_mesh_admin.py PLAN FILE WATCH`.

It attaches to the workers in PLAN, as a second client beside their driver, and starts no processes
there. It listens on 127.0.0.1 only, and writes its address to FILE. Its end does not affect driver
and workers. A driver keeps the file WATCH while it wants the admin: without it, this process ends
after a while.

Monarch's admin accepts every client that reaches its port. Where workers use certificates, this
process therefore connects, closes that port, and relays requests of clients with a certificate of
the attempt over its own connections.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import resource
import socket
import ssl
import struct
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from typing import Any, NoReturn

# An admin ends soon after a killed runner.
_LOOK_S = 2.0
# Another driver often follows one that ends.
_UNWANTED_S = 30.0
# Beside the time to attach: after that Monarch hangs.
_START_S = 60.0
# Measured: two for each host, and 22.
_FILES_A_HOST, _FILES_BESIDES = 3, 200
# Without a connection Monarch writes 30 MB a second to a log of its own.
_MOST_WRITTEN = 64 * 1024 * 1024
# The runner sends two requests at a time.
_RELAYED_AT_ONCE = 2
# The admin itself gives a host 3 seconds.
_ANSWER_S = 30.0
_HANDSHAKE_S, _IDLE_S = 5.0, 120.0
# The name in certificates of nodes, as ssl parses it; those of laptops name their sessions.
_NODE = ((("commonName", "mportal node"),),)
# States in proc_net_tcp(5): of a listener, and of a connection that both ends have closed.
_LISTENING, _CLOSED = "0A", "06"
# The characters of a path that are passed on as they are.
_IN_PATHS = "/%:@?=&<>,;+!*'()$[]~"


def main(plan_file: str, file: str, watch_file: str) -> None:
    """Serve while the process that started this one lives, and a driver requests the admin."""
    runner = os.getppid()
    _lower_priority()
    plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
    _limit(sum(len(workers) for workers in plan["meshes"].values()))
    limit_s = plan["attach_timeout_s"] * len(plan["meshes"]) + _START_S
    hangs = threading.Timer(limit_s, _give_up, [limit_s])
    hangs.daemon = True
    hangs.start()
    # The reference keeps the admin alive.
    url, _held = _start(plan)
    if urlsplit(url).scheme == "https":
        url = _serve_behind_relay(urlsplit(url).port or 0)
    hangs.cancel()
    new = Path(file + ".new")
    new.write_text(json.dumps({"urls": [url]}), encoding="utf-8")
    new.replace(file)
    watch, wanted_at = Path(watch_file), time.monotonic()
    while os.getppid() == runner and time.monotonic() - wanted_at < _UNWANTED_S:
        time.sleep(_LOOK_S)
        if watch.exists():
            wanted_at = time.monotonic()


def _start(plan: dict[str, Any]) -> tuple[str, Any]:
    from monarch import actor  # noqa: PLC0415
    from monarch.job import MeshAdminConfig  # noqa: PLC0415

    # Faults are for the driver.
    actor.unhandled_fault_hook = lambda _failure: None
    actor.enable_transport(plan["transport"])
    attached = {
        name: actor.attach_to_workers(
            ca="trust_all_connections",
            workers=[worker["address"] for worker in workers],
            name="watched_" + name.replace("-", "_"),
        )
        for name, workers in plan["meshes"].items()
    }
    # Leave out meshes that the driver has shut down.
    meshes = {name: mesh for name, mesh in attached.items() if _is_there(mesh, plan)}
    if not meshes:
        raise TimeoutError("no worker answers")
    job = _job_of(meshes).enable_admin(MeshAdminConfig(admin_addr="127.0.0.1:0"))
    return str(job.state(cached_path=None).admin_url), job


def _is_there(mesh: Any, plan: dict[str, Any]) -> bool:
    try:
        mesh.initialized.get(timeout=plan["attach_timeout_s"])
    except TimeoutError:
        return False
    return True


def _job_of(meshes: dict[str, Any]) -> Any:
    from monarch.job import JobState, JobTrait  # noqa: PLC0415

    class Attached(JobTrait):  # type: ignore[misc]  # monarch has no types
        """A job of existing meshes, since only jobs have admins."""

        def _create(self, client_script: str | None) -> None:
            """Create nothing."""

        def _state(self) -> Any:
            return JobState(meshes)

        def can_run(self, spec: Any) -> bool:
            return False

        def _kill(self) -> None:
            """Kill nothing: the meshes belong to the driver."""

    return Attached()


def _serve_behind_relay(port: int) -> str:
    """Connect to the admin, close its port, and return the address of a relay in front of it.

    The relay admits only nodes of the attempt. ConnectionError: another process connected while the
    port was open.
    """
    certificates = [os.environ[f"HYPERACTOR_TLS_{name}"] for name in ("CERT", "KEY", "CA")]
    connections = [_connect(port, certificates) for _ in range(_RELAYED_AT_ONCE)]
    _close_listener(port)
    own = {connection.sock.getsockname()[1] for connection in connections}
    if _clients_of(port) - own:
        raise ConnectionError("another process connected to the mesh admin while it started")
    relay = Relay(connections, certificates)
    threading.Thread(target=relay.serve_forever, daemon=True, name="mesh-relay").start()
    return f"https://127.0.0.1:{relay.server_port}"


def _connect(port: int, certificates: list[str]) -> http.client.HTTPSConnection:
    """Connect to the admin in this process; the handshake ends when Monarch has accepted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates[2])
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_ANSWER_S, context=context)
    connection.connect()
    # A lost connection cannot be replaced.
    connection.auto_open = 0
    return connection


def _close_listener(port: int) -> None:
    """Close the socket of this process that listens at `port`. LookupError: none does.

    Its file descriptor then belongs to another socket, which Monarch's event loop does not watch:
    Monarch waits for a next connection that never comes. Those that it has accepted stay.
    """
    for descriptor in _sockets():
        with socket.socket(fileno=os.dup(descriptor)) as found:
            is_listening = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if is_listening and found.family == socket.AF_INET and found.getsockname()[1] == port:
                with socket.socket() as unbound:
                    os.dup2(unbound.fileno(), descriptor, inheritable=False)
                return
    raise LookupError(f"no socket of this process listens at port {port}")


def _sockets() -> list[int]:
    """Return the file descriptors of this process that are sockets."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                found.append(int(name))
    return found


def _clients_of(port: int) -> set[int]:
    """Return the ports from which processes are connected to `port`, also half closed."""
    server = "{:08X}:{:04X}".format(*struct.unpack("=I", socket.inet_aton("127.0.0.1")), port)
    rows = [row.split() for row in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return {
        int(remote.partition(":")[2], 16)
        for _, local, remote, state, *_ in rows
        # One that has closed may be of an earlier listener at the same port.
        if local == server and state not in (_LISTENING, _CLOSED)
    }


class Relay(ThreadingHTTPServer):
    """A server for clients with a certificate of the attempt; passes GET requests on."""

    daemon_threads = True

    def __init__(
        self, connections: list[http.client.HTTPSConnection], certificates: list[str]
    ) -> None:
        super().__init__(("127.0.0.1", 0), RelayedRequest)
        self.idle: queue.SimpleQueue[http.client.HTTPSConnection] = queue.SimpleQueue()
        for connection in connections:
            self.idle.put(connection)
        certificate, key, authority = certificates
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
        # A client that never finishes its handshake holds up its own thread only.
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients without a certificate, and those that hang up."""


class RelayedRequest(BaseHTTPRequestHandler):
    """One connection of a client: each request goes over an idle connection to the admin."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Relay

    def setup(self) -> None:
        """Let the client prove that it is a node. PermissionError: it is a laptop."""
        self.request.settimeout(_HANDSHAKE_S)
        self.request.do_handshake()
        if self.request.getpeercert()["subject"] != _NODE:
            raise PermissionError
        self.request.settimeout(_IDLE_S)
        super().setup()

    def do_GET(self) -> None:
        """Answer as the admin does. If it does not, end the process, which the runner restarts."""
        connection = self.server.idle.get()
        try:
            connection.request("GET", quote(self.path, safe=_IN_PATHS))
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            _fail(f"Monarch's admin does not answer: {error!r:.200}")
        self.server.idle.put(connection)
        self.send_response(response.status)
        self.send_header("Content-Type", response.getheader("Content-Type", "text/plain"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Write no line for each request."""


def _lower_priority() -> None:
    """Lower the priority of this process: the job needs memory and processors more."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError):
        os.nice(5)


def _limit(hosts: int) -> None:
    """Raise the limit of open files; RuntimeError if it is too low, which makes Monarch loop."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = hosts * _FILES_A_HOST + _FILES_BESIDES
    if most != resource.RLIM_INFINITY and most < needed:
        raise RuntimeError(f"it may open {most} files and needs {needed} for {hosts} hosts")
    soft = needed if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_WRITTEN, _MOST_WRITTEN))


def _give_up(limit_s: float) -> None:
    _fail(f"Monarch started no admin in {limit_s:.0f} s")


def _fail(why: str) -> NoReturn:
    """End the process from any thread."""
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    code = 1
    try:
        main(*sys.argv[1:4])
        code = 0
    except BaseException as error:  # noqa: BLE001 - Monarch's panics are no Exceptions
        sys.stderr.write(f"{error!r:.300}\n")
        sys.stderr.flush()
    # Not as Python ends: Monarch's threads may not live through that, and nothing is left to do.
    os._exit(code)
