"""A laptop at a stand-in gateway: a port whose connections become links, and a certificate."""

from __future__ import annotations

import itertools
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from monarch_client.gateway.certificates import install, make_request
from tests.stand_in_gateway import StandInGateway


def certified(gateway: StandInGateway, folder: Path, session: int) -> Path:
    """Have the head sign a certificate for the session; return its folder."""
    folder.mkdir()
    gateway.order("sign", id=1, session=session, csr=make_request(folder))
    signed = gateway.wait_for_message("signed", id=1)
    install(folder, signed["leaf"], signed["ca"])
    return folder


class Way:
    """A local port of a program: each connection becomes a link of the gateway."""

    def __init__(
        self, gateway: StandInGateway, session: int, *, kind: str, link: int = 0, **target: Any
    ) -> None:
        self._gateway = gateway
        self._target = {"session": session, "link": link, "kind": kind, **target}
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port: int = self._server.getsockname()[1]
        self.address = f"tcp:127.0.0.1:{self.port}"
        # Whether the program reads.
        self.reads = threading.Event()
        self.reads.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections; the program may open others."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        # Without it the accept that waits would accept once more.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        for generation in itertools.count(1):
            try:
                local, _ = self._server.accept()
            except OSError:
                return
            self._open.append(local)
            try:
                token = self._gateway.dial(generation=generation, **self._target)
                link = self._gateway.link(token)
            except (AssertionError, ConnectionClosed):  # the head has ended
                return
            self._open.append(link.socket)
            for pump in (self._send, self._receive):
                threading.Thread(target=pump, args=(local, link), daemon=True).start()

    def _send(self, local: socket.socket, link: ServerConnection) -> None:
        with suppress(OSError, ConnectionClosed):
            while content := local.recv(1 << 16):
                link.send(content)

    def _receive(self, local: socket.socket, link: ServerConnection) -> None:
        with suppress(OSError, ConnectionClosed):
            for content in link:
                self.reads.wait()
                local.sendall(content)
        with suppress(OSError):
            local.shutdown(socket.SHUT_RDWR)
