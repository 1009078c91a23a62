"""The web server's socket: a free port of this installation's own, kept from start to start."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.home import Home

# Below the range from which the kernel hands out ports to clients.
PORTS = range(8100, 9900)
TRIES = 200


def listen(home: Home) -> socket.socket:
    """A listening socket on loopback: on MPORTAL_PORT, else the port of last time, else a free one.

    EmbeddedError if the fixed port is taken.
    """
    fixed = os.environ.get("MPORTAL_PORT")
    if fixed:
        listener = _bound(int(fixed)) if fixed.isdecimal() else None
        if listener is None:
            raise EmbeddedError(
                f"Port {fixed} (MPORTAL_PORT) can not be had: it is in use, or no port."
            )
        return listener
    last = urlsplit(home.url).port
    first = home.number % len(PORTS)
    others = [PORTS[(first + step) % len(PORTS)] for step in range(TRIES)]
    for port in [last, *others] if last else others:
        listener = _bound(port)
        if listener is not None:
            return listener
    raise EmbeddedError(f"No free port between {PORTS.start} and {PORTS.stop}; set MPORTAL_PORT.")


def url_of(listener: socket.socket) -> str:
    """The address that reaches the socket from this machine."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _bound(port: int) -> socket.socket | None:
    # Named, because asyncio sets TCP_NODELAY only where the protocol is: without it answers of two
    # packets, such as those to frames, wait 40 ms for an acknowledgement in between.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(256)
    except OSError:
        listener.close()
        return None
    return listener
