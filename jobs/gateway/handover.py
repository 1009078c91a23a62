"""Passing a connection from web to the gateway: its file descriptor and the bytes read so far.

Web accepts every connection of the portal's port. It reads the head of a request, and passes the
socket of a gateway's request on, so that no byte of a stream goes through web.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

# Web's HTTP parser accepts heads up to 64 KiB. One message, so that it arrives whole.
_LARGEST_HEAD = 128 * 1024
_BACKLOG = 512
Receive = Callable[[socket.socket, bytes], None]


def hand_over(path: Path, descriptor: int, head: bytes) -> None:
    """Send a connection to the gateway that listens at `path`. OSError: there is none now.

    The caller closes its own copy. Nothing here waits.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LARGEST_HEAD)
        client.connect(str(path))
        socket.send_fds(client, [head], [descriptor])


class Receiver:
    """The gateway's end: calls `receive` with each connection that web passes."""

    def __init__(self, path: Path, receive: Receive) -> None:
        self._path = path
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        # Only the portal's own user may pass connections.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        self._listener.bind(str(path))
        self._listener.listen(_BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Receive no further connections."""
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            sender, _ = self._listener.accept()
            sender.setblocking(False)
            self._loop.add_reader(sender, self._read, sender)

    def _read(self, sender: socket.socket) -> None:
        self._loop.remove_reader(sender)
        with sender:
            try:
                head, descriptors, _, _ = socket.recv_fds(sender, _LARGEST_HEAD, 1)
            except OSError:
                log.warning("no connection received", exc_info=True, extra={"action": "handover"})
                return
        if descriptors:
            connection = socket.socket(fileno=descriptors[0])
            connection.setblocking(False)
            self._receive(connection, head)
