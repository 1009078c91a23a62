"""The living processes of a cluster, and how to end exactly those: by user id, or by a mark.

A process is known by its number and its start time, never by its number or its name alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# The variable that distinguishes a job's processes from others of the same user.
MARK = "MPORTAL_CLUSTER"
KILL_PATIENCE_S = 5.0
_LISTENING = "0A"  # as written in /proc/net/tcp
# Runs as the user whose processes are to end: kill(-1) reaches all of them in one step, so that
# none can escape by forking. The kernel spares the caller.
_KILL_ALL = """
import os, signal, sys
uid = int(sys.argv[1])
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
try:
    os.kill(-1, signal.SIGKILL)
except ProcessLookupError:
    pass
"""


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as /proc shows it."""

    pid: int
    started: int  # clock ticks after boot
    parent: int
    session: int

    def send(self, number: signal.Signals) -> None:
        """Send a signal to exactly this process. Silent if it has ended."""
        with suppress(ProcessLookupError, PermissionError):
            handle = os.pidfd_open(self.pid)
            try:
                # The handle is held, so the number cannot change hands after this look.
                now = process_of(self.pid)
                if now is not None and now.started == self.started:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def process_of(pid: int) -> Process | None:
    """Return the living process `pid`; None if there is none, or only a zombie."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name is in brackets and may hold anything, brackets too.
    fields = text.rpartition(")")[2].split()
    if fields[0] in {"Z", "X"}:
        return None
    return Process(pid, started=int(fields[19]), parent=int(fields[1]), session=int(fields[3]))


def boot_id() -> str:
    """Read the id of this boot: process numbers mean nothing in another one."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def processes_of_uid(uid: int) -> list[Process]:
    """List all living processes of a user."""
    return [process for process in _everyone() if _uid_of(process.pid) == uid]


def living_uids() -> frozenset[int]:
    """Return the user ids that have running processes."""
    uids = (_uid_of(process.pid) for process in _everyone())
    return frozenset(uid for uid in uids if uid is not None)


def processes_marked(cluster_name: str) -> list[Process]:
    """List the living processes that carry the cluster's mark, with their sessions and children.

    For jobs that run as the portal's own user. A process that clears its environment is found as
    long as its parent or one of its session is marked.
    """
    everyone = _everyone()
    found = {process.pid for process in everyone if _has_mark(process.pid, cluster_name)}
    while True:
        sessions = {process.session for process in everyone if process.pid in found}
        sessions.discard(os.getsid(0))
        more = {
            process.pid
            for process in everyone
            if process.session in sessions or process.parent in found
        }
        if more <= found:
            return [process for process in everyone if process.pid in found - {os.getpid()}]
        found |= more


def listener_on(port: int) -> tuple[int, str] | None:
    """Return the id and name of a process that listens on the port, if visible."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in _everyone() if sockets else ():
        directory = PROC / str(process.pid)
        with suppress(OSError):
            if any(str(link.readlink()) in sockets for link in (directory / "fd").iterdir()):
                return process.pid, (directory / "comm").read_text(errors="replace").strip()
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                is_listening = fields[3] == _LISTENING
                if is_listening and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def kill_all(cluster_name: str, uid: int | None) -> bool:
    """Kill all processes of the cluster until none is left; False if some of them do not end."""
    deadline = time.monotonic() + KILL_PATIENCE_S
    while alive := processes_of_cluster(cluster_name, uid):
        if uid is not None:
            _kill_user(uid)
        for process in alive:
            process.send(signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        # The dead need a moment to leave /proc.
        time.sleep(0.005)
    return True


def processes_of_cluster(cluster_name: str, uid: int | None) -> list[Process]:
    """List the cluster's processes by its own user id if it has one, otherwise by its mark."""
    return processes_marked(cluster_name) if uid is None else processes_of_uid(uid)


def _everyone() -> list[Process]:
    pids = (int(entry) for entry in os.listdir(PROC) if entry.isdigit())  # noqa: PTH208 - hot
    return [process for pid in pids if (process := process_of(pid)) is not None]


def _uid_of(pid: int) -> int | None:
    # Not the owner of /proc/<pid>: a process that forbids core dumps shows root there.
    with suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return None


def _has_mark(pid: int, cluster_name: str) -> bool:
    mark = f"{MARK}={cluster_name}".encode()
    with suppress(OSError):
        return mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def _kill_user(uid: int) -> None:
    command = [sys.executable, "-I", "-S", "-c", _KILL_ALL, str(uid)]
    subprocess.run(command, check=True, env={}, timeout=KILL_PATIENCE_S)
