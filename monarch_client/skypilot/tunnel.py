"""The way to a cluster's head: straight, or through ssh as SkyPilot knows it.

The answering host must have a certificate of the job's own authority, so neither a strange machine
with the same private address nor one on the way can be taken for the head.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from monarch_client.skypilot.job_errors import ClusterError, UnreachableError

DIRECT_S = 3.0
TUNNEL_S = 60.0
LOOK_S = 0.1
AGAIN_S = 2.0
# SkyPilot keeps no host keys either, and TLS inside of the tunnel tells who answers.
OPTIONS = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "GlobalKnownHostsFile=/dev/null",
    "ExitOnForwardFailure=yes",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "ConnectTimeout=15",
    "BatchMode=yes",
    "LogLevel=ERROR",
)


def why_unreachable(address: str, port: int, certificates: Path, timeout_s: float) -> str:
    """Return why the worker there does not answer as one of the job's; "" if it does."""
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    context.load_cert_chain(certificates / "leaf.crt", certificates / "leaf.key")
    try:
        with (
            socket.create_connection((address, port), timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=address),
        ):
            return ""
    except OSError as error:
        return str(error) or type(error).__name__


def way_to(
    head: tuple[str, int],
    reach: str,
    folder: Path,
    ssh_access: Callable[[], Mapping[str, Any]],
) -> tuple[str, Tunnel | None]:
    """Return the address at which the head's worker answers here, and the tunnel if one is used.

    `reach`: "direct", "tunnel", or "auto" for whichever works; `folder` has the certificates.
    UnreachableError: there is none.
    """
    address, port = head
    why = "not tried"
    if reach != "tunnel":
        why = why_unreachable(address, port, folder, DIRECT_S)
        if not why:
            return f"tls://{address}:{port}", None
    if reach == "direct":
        raise UnreachableError(f"{address}:{port} is not reached from here: {why}")
    try:
        tunnel = Tunnel(ssh_access(), head, folder)
    except (ClusterError, OSError) as error:
        raise _neither(head, why, error) from error
    try:
        tunnel.wait(folder)
    except BaseException as error:
        tunnel.close()
        if isinstance(error, UnreachableError):
            raise _neither(head, why, error) from error
        raise
    return f"tls://127.0.0.1:{tunnel.port}", tunnel


def _neither(head: tuple[str, int], direct: str, ssh: Exception) -> UnreachableError:
    return UnreachableError(
        f"{head[0]}:{head[1]} is reached neither directly ({direct}) nor by ssh ({ssh})"
    )


class Tunnel:
    """A port of this machine that leads to one of a node. `close` ends it; so does our end."""

    def __init__(self, access: Mapping[str, Any], target: tuple[str, int], folder: Path) -> None:
        self.port = _free_port()
        self._errors = folder / "ssh.log"
        self._argv = _argv(access, self.port, target, folder)
        self._is_closed = threading.Event()
        self._process = self._start()
        threading.Thread(target=self._keep, daemon=True, name="tunnel").start()

    def wait(self, certificates: Path) -> None:
        """Wait until a worker answers through it. UnreachableError: none does."""
        deadline = time.monotonic() + TUNNEL_S
        while why := why_unreachable("127.0.0.1", self.port, certificates, DIRECT_S):
            if time.monotonic() > deadline or self._process.poll() is not None:
                said = self._errors.read_text(errors="replace").strip()[-1000:]
                raise UnreachableError(said or why)
            time.sleep(LOOK_S)

    def close(self) -> None:
        """End ssh."""
        self._is_closed.set()
        self._process.terminate()

    def _keep(self) -> None:
        """Connect again, on the same port, whenever the connection is lost."""
        while not self._is_closed.is_set():
            self._process.wait()
            if not self._is_closed.wait(AGAIN_S):
                self._process = self._start()
        self._process.terminate()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._errors.open("wb") as errors:
            # `cat` ends when we do, whatever ends us, and ssh with it.
            return subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )


def _argv(access: Mapping[str, Any], port: int, target: tuple[str, int], folder: Path) -> list[str]:
    argv = ["ssh", "-T"]
    for option in OPTIONS:
        argv += ["-o", option]
    if access["key"]:
        key = folder / "ssh.key"
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(str(access["key"]).rstrip("\n") + "\n")
        argv += ["-i", str(key), "-o", "IdentitiesOnly=yes"]
    if access["proxy_command"]:
        argv += ["-o", f"ProxyCommand={access['proxy_command']}"]
    address, worker_port = target
    argv += ["-L", f"127.0.0.1:{port}:{address}:{worker_port}", "-p", str(access["port"])]
    login = f"{access['user']}@{access['host']}" if access["user"] else str(access["host"])
    return [*argv, login, "cat"]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
