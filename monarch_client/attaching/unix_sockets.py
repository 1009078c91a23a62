"""Unix sockets of this user's programs: in a private folder, and who is at their other end.

Never abstract ones: every process of the network namespace lists those in /proc/net/unix and
connects to them, whatever its user.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple

_CREDENTIALS = struct.Struct("iII")


class Peer(NamedTuple):
    """The process at the other end of a connection, as the kernel names it."""

    pid: int
    uid: int
    gid: int


def listen_in(folder: Path, name: str, backlog: int) -> socket.socket:
    """Return a listener in a folder that only this user enters."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / name))
    listener.listen(backlog)
    return listener


def connect_to(address: str) -> socket.socket:
    """Connect to a listener of this user. OSError: there is none, or it is another user's."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        if peer_of(connection).uid != os.getuid():
            raise ConnectionRefusedError(f"{address} belongs to another user")
    except BaseException:
        connection.close()
        raise
    return connection


def peer_of(connection: socket.socket) -> Peer:
    """Return the process that has connected, or that listens."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(data))
