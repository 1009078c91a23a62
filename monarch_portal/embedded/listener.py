"""The web server's socket: a free port of this installation's own, kept from start to start."""

from __future__ import annotations

import os
import socket
from typing import NoReturn
from urllib.parse import urlsplit

from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.port_holder import describe_holder

# Below the range from which the kernel hands out ports to clients.
PORTS = range(8100, 9900)
TRIES = 200
LAST_PORT = 65535
ADDRESS = "127.0.0.1"
# A word of the command line of each portal.
_PORTALS_PACKAGE = "monarch_portal"
_END_IT = "End that process and start again. Or move the"


def listen(home: Home) -> socket.socket:
    """Return a listening socket on loopback: on MPORTAL_PORT, else the port of last time.

    The first start takes a free port. Later ones never move by themselves: clients and runners
    know the address, and the process that has the port now would receive what they send.
    EmbeddedError says which process has it.
    """
    chosen = os.environ.get("MPORTAL_PORT")
    if chosen:
        if not chosen.isdecimal() or not 0 < int(chosen) <= LAST_PORT:
            raise EmbeddedError(f"MPORTAL_PORT is {chosen!r}, which is no port.")
        return _bound(int(chosen)) or _refuse(int(chosen), "the port in MPORTAL_PORT")
    last = urlsplit(home.url).port
    if last:
        return _bound(last) or _refuse(last, "this portal's port")
    first = home.number % len(PORTS)
    for step in range(TRIES):
        listener = _bound(PORTS[(first + step) % len(PORTS)])
        if listener is not None:
            return listener
    raise EmbeddedError(f"No free port between {PORTS.start} and {PORTS.stop}; set MPORTAL_PORT.")


def _refuse(port: int, which: str) -> NoReturn:
    holder = describe_holder(ADDRESS, port)
    # Its jobs and users are as good as this one's, which was stopped meanwhile.
    is_portal = _PORTALS_PACKAGE in holder
    way_on = "That is another portal: do not end it. Move this" if is_portal else _END_IT
    raise EmbeddedError(
        f"Port {port}, {which}, is in use by {holder}\n"
        f"{way_on} portal to another port: MPORTAL_PORT=N make run. Running jobs follow it; people "
        "must use the new address."
    )


def url_of(listener: socket.socket) -> str:
    """Return the address that reaches the socket from this machine."""
    return f"http://{ADDRESS}:{listener.getsockname()[1]}"


def _bound(port: int) -> socket.socket | None:
    # Named, because asyncio sets TCP_NODELAY only where the protocol is: without it answers of two
    # packets, such as those to frames, wait 40 ms for an acknowledgement in between.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen(256)
    except OSError:
        listener.close()
        return None
    return listener
