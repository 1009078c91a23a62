"""Name the process that listens on a port, for the administrator."""

from __future__ import annotations

import pwd
from pathlib import Path

from monarch_client.runner.base.listening_sockets import ListeningSocket, sockets_listening_at

_LONGEST_COMMAND = 200


def describe_holder(address: str, port: int) -> str:
    """Return process, user and command of the listener at `address`, as far as visible."""
    sockets = sockets_listening_at(address, port)
    if not sockets:
        return "a process that this machine does not show"
    held = sockets[0]
    user = _user_name(held.uid)
    pid = _pid_of(held)
    if pid is None:
        return f"a process of user {user}"
    return f"process {pid} of user {user}: {_command(pid)}"


def _user_name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)


def _pid_of(held: ListeningSocket) -> int | None:
    """Return the process that has the socket open; None if it is not ours to look at."""
    wanted = f"socket:[{held.inode}]"
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            descriptors = list((entry / "fd").iterdir())
        except OSError:
            continue
        if any(_target(descriptor) == wanted for descriptor in descriptors):
            return int(entry.name)
    return None


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "it has just ended"
    shown = " ".join(words.replace("\0", " ").split())
    # A process name may hold any characters.
    printable = "".join(each if each.isprintable() else "?" for each in shown)
    return printable[:_LONGEST_COMMAND] or "(no command line)"
