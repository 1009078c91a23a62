"""A TCP proxy of a test's own: it forwards, and cuts connections on command."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

Dial = Callable[[], socket.socket]
# What a link asks of each piece on its way: (is it from the client, bytes) -> cut here?
Look = Callable[[bool, bytes], bool]
# Another continuation for a connection whose client sends these bytes next, or None.
Reroute = Callable[[bytes], socket.socket | None]


class Link:
    """One connection and its continuation. `cut` ends both."""

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        look: Look | None,
        reroute: Reroute | None = None,
    ) -> None:
        self._ends = (client, server)
        self._look = look
        self._reroute = reroute
        self.is_cut = False

    def start(self) -> None:
        """Forward both ways, each on a thread."""
        client, server = self._ends
        self._forward(client, server)
        self._forward(server, client)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        arguments = (source, target, source is self._ends[0])
        threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def cut(self) -> None:
        """Close both ends without notice. A repetition does nothing."""
        self.is_cut = True
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _pump(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        try:
            while data := source.recv(65536):
                if self._look is not None and self._look(from_client, data):
                    break
                if from_client and self._reroute is not None:
                    target = self._continue(self._reroute(data))
                target.sendall(data)
        except OSError:
            pass
        finally:
            if source in self._ends:
                self.cut()
            source.close()

    def _continue(self, server: socket.socket | None) -> socket.socket:
        """Return the server to send to: a new one in place of the present one, if it is given."""
        client, present = self._ends
        if server is None:
            return present
        server.settimeout(None)
        self._ends = (client, server)
        with suppress(OSError):
            present.shutdown(socket.SHUT_RDWR)
        self._forward(server, client)
        return server


class TcpProxy:
    """A proxy on a port of its own; `dial` connects each connection further.

    `reroute` may connect a connection anew when its client sends more.
    """

    def __init__(
        self,
        dial: Dial,
        look: Callable[[], Look] | None = None,
        host: str = "127.0.0.1",
        reroute: Reroute | None = None,
    ) -> None:
        self._dial = dial
        self._look = look
        self._reroute = reroute
        self._links: list[Link] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server((host, 0))
        threading.Thread(target=self._serve, name="proxy", daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._listener.getsockname()[1])

    def cut_all(self) -> int:
        """Cut every connection and return how many there were."""
        with self._lock:
            alive = [link for link in self._links if not link.is_cut]
            self._links = []
        for link in alive:
            link.cut()
        return len(alive)

    def close(self) -> None:
        """Stop listening, and cut every connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        try:
            server = self._dial()
        except OSError:
            client.close()
            return
        # Dialing had a time limit; an open connection may be silent for as long as it likes.
        server.settimeout(None)
        link = Link(client, server, self._look() if self._look else None, self._reroute)
        with self._lock:
            self._links = [each for each in self._links if not each.is_cut] + [link]
        link.start()
