"""A balancer in front of several webs and gateways that checks the health of each, as any does."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable

import httpx

from tests.faults.tcp_proxy import Look, TcpProxy

_ASK_EVERY_S = 0.3
_PATIENCE_S = 1.5


class Backend:
    """One web or gateway, as the balancer sees it: down until it answers."""

    def __init__(self, port: int, health: str) -> None:
        self.port = port
        self._health = f"http://127.0.0.1:{port}{health}"
        self.is_up = False
        self.proxy = TcpProxy(lambda: socket.create_connection(("127.0.0.1", port), timeout=5))

    def ask(self, http: httpx.Client) -> None:
        """Check whether it answers; when it stops answering, its connections are cut."""
        try:
            answer = http.get(self._health)
            is_up = answer.is_success
        except httpx.TransportError:
            is_up = False
        if self.is_up and not is_up:
            self.proxy.cut_all()
        self.is_up = is_up


class FrontDoor:
    """One address for all webs and gateways; each connection goes to the next that is up.

    `on_the_way`, where it is set, watches every connection that begins.
    """

    on_the_way: Callable[[], Look] | None = None

    def __init__(self, web_ports: list[int], gateway_ports: list[int]) -> None:
        self._webs = [Backend(port, "/healthz") for port in web_ports]
        self._gateways = [Backend(port, "/gateway/healthz") for port in gateway_ports]
        self._backends = [*self._webs, *self._gateways]
        self._turn = itertools.count()
        self._closing = threading.Event()
        self._proxy = TcpProxy(self._dial, self._look, reroute=self._reroute)
        self._askers = [
            threading.Thread(target=self._ask, args=(each,), daemon=True) for each in self._backends
        ]
        for asker in self._askers:
            asker.start()

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return self._proxy.port

    @property
    def url(self) -> str:
        """The address that people and runners use."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_open(self) -> bool:
        """Whether every web and every gateway is up."""
        return all(each.is_up for each in self._backends)

    def close(self) -> None:
        """Forward nothing any more."""
        self._closing.set()
        for asker in self._askers:
            asker.join()
        self._proxy.close()
        for each in self._backends:
            each.proxy.close()

    def _dial(self) -> socket.socket:
        return self._connect(self._webs)

    def _reroute(self, data: bytes) -> socket.socket | None:
        """Connect to a gateway if a request below /gateway/ begins; a proxy does so for each."""
        line = data.partition(b"\r\n")[0]
        is_for_gateway = line.startswith(b"GET /gateway/") and line.endswith(b" HTTP/1.1")
        return self._connect(self._gateways) if is_for_gateway and self._gateways else None

    def _connect(self, backends: list[Backend]) -> socket.socket:
        up = [each for each in backends if each.is_up]
        if not up:
            raise OSError("none is up")
        # Through its own proxy, which cuts what hangs in it when it stops.
        chosen = up[next(self._turn) % len(up)]
        return socket.create_connection(("127.0.0.1", chosen.proxy.port), timeout=5)

    def _look(self) -> Look:
        return self.on_the_way() if self.on_the_way else lambda _from_client, _data: False

    def _ask(self, backend: Backend) -> None:
        with httpx.Client(timeout=_PATIENCE_S) as http:
            while not self._closing.wait(_ASK_EVERY_S):
                backend.ask(http)
