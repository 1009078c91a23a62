"""The way to a cluster's head: straight, or through ssh as SkyPilot knows it.

The answering host must have a certificate of the job's own authority, so neither a strange machine
with the same private address nor one on the way can be taken for the head.
"""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from monarch_client.attaching.tunnel import Tunnel
from monarch_client.attaching.tunnel_process import PORT
from monarch_client.skypilot.job_errors import ClusterError, UnreachableError

DIRECT_S = 3.0
TUNNEL_S = 60.0
LOOK_S = 0.1
READY = "mportal-tunnel-ready"
SILENCE_S = 20
# Runs on ssh's host. A worker serves one connection of a client: the old one, which may look alive
# there long after it has broken, must end before the new one begins. So ssh's former process is
# ended first, and each one ends without its client's signs of life.
REMOTE = (
    "exec bash -c '"
    "umask 077; f=/tmp/.mportal-tunnel-{token}; "
    "is_ssh() {{ read c 2>/dev/null </proc/$1/comm; case $c in sshd*|dropbear*) true;; *) false;; "
    "esac; }}; "
    "if [ -f $f ]; then read p <$f; if is_ssh $p; then kill $p; "
    "for i in {{1..50}}; do [ -d /proc/$p ] || break; sleep 0.1; done; fi; fi; "
    "echo $PPID >$f; echo {ready}; "
    "while read -t {silence_s}; do :; done; "
    "read p <$f; if [ $p = $PPID ]; then rm -f $f; fi; "
    "if is_ssh $PPID; then kill $PPID; fi'"
)
# SkyPilot keeps no host keys either, and TLS inside of the tunnel shows who answers.
OPTIONS = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "GlobalKnownHostsFile=/dev/null",
    "ExitOnForwardFailure=yes",
    # A silent connection is given up after 20 s: far below what Monarch endures.
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
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
        tunnel = open_ssh(ssh_access(), head, folder)
    except (ClusterError, OSError) as error:
        raise _neither(head, why, error) from error
    try:
        _wait(tunnel, folder)
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


def open_ssh(access: Mapping[str, Any], target: tuple[str, int], folder: Path) -> Tunnel:
    """Return a tunnel through ssh; `access` as in `JobCluster.ssh_access`, `folder` is private."""
    token = secrets.token_hex(16)
    forward = f"127.0.0.1:{PORT}:{target[0]}:{target[1]}"
    remote = REMOTE.format(token=token, ready=READY, silence_s=SILENCE_S)
    command = [*_ssh(access, folder), "-L", forward, _login(access), remote]
    return Tunnel(command, READY, folder / "ssh.log")


def _wait(tunnel: Tunnel, certificates: Path) -> None:
    """Wait until a worker answers through it. UnreachableError: none does."""
    deadline = time.monotonic() + TUNNEL_S
    tunnel.wait(TUNNEL_S)
    while not isinstance(trouble := tunnel.look(), TimeoutError):
        why = why_unreachable("127.0.0.1", tunnel.port, certificates, DIRECT_S)
        if not why:
            return
        if time.monotonic() > deadline:
            raise UnreachableError(why)
        time.sleep(LOOK_S)
    raise UnreachableError(str(trouble))


def _ssh(access: Mapping[str, Any], folder: Path) -> list[str]:
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
    return [*argv, "-p", str(access["port"])]


def _login(access: Mapping[str, Any]) -> str:
    return f"{access['user']}@{access['host']}" if access["user"] else str(access["host"])
