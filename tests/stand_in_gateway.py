"""A gateway without a portal: accepts the streams of a head, and orders as the portal does."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

HEAD, LINK = "/gateway/v1/head", "/gateway/v1/link"
Message = dict[str, Any]


class StandInGateway:
    """The gateway: `received` has the messages of all control streams, `heads` their number."""

    def __init__(self, token: str) -> None:
        self.received: list[Message] = []
        self.heads = 0
        self.is_refusing = False
        self._token = token
        self._head: ServerConnection | None = None
        self._tokens = map("link-{}".format, itertools.count(1))
        self._links: dict[str, ServerConnection] = {}
        self._changed = threading.Condition()
        self._server: Server = serve(self._serve, "127.0.0.1", 0, compression=None)
        self.port: int = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End all streams and the server."""
        self._server.shutdown()
        for stream in [self._head, *self._links.values()]:
            if stream is not None:
                stream.socket.close()

    def order(self, op: str, **fields: Any) -> None:
        """Send an order to the head that is connected."""
        head = self._wait_for(lambda: self._head)
        head.send(json.dumps({"op": op, **fields}))

    def wait_for_message(self, op: str, **fields: Any) -> Message:
        """Wait for a message of a head with these fields."""

        def found() -> Message | None:
            wanted = {"op": op, **fields}
            for message in self.received:
                if wanted.items() <= message.items():
                    return message
            return None

        return self._wait_for(found)

    def wait_for_heads(self, number: int) -> None:
        """Wait until a head has connected so many times."""
        self._wait_for(lambda: self.heads >= number)

    def cut_head(self) -> None:
        """End the control stream without a close frame."""
        assert self._head is not None
        self._head.socket.shutdown(2)

    def dial(self, *, session: int = 1, link: int = 0, generation: int = 1, **more: Any) -> str:
        """Order the head to dial back; return the token of the link."""
        token = next(self._tokens)
        ids = {"session": session, "link": link, "generation": generation}
        self.order("dial", **ids, **{"rank": 0, "kind": "worker", **more}, token=token)
        return token

    def link(self, token: str) -> ServerConnection:
        """Return the data link of a token, once the head has dialed it."""
        return self._wait_for(lambda: self._links.get(token))

    def _wait_for(self, find: Callable[[], Any], seconds: float = 30.0) -> Any:
        with self._changed:
            assert self._changed.wait_for(find, seconds), f"not in time; got {self.received}"
            return find()

    def _serve(self, stream: ServerConnection) -> None:
        request = stream.request
        assert request is not None
        credential = request.headers["Authorization"]
        if request.path == LINK:
            self._serve_link(stream, credential.removeprefix("Bearer "))
        elif request.path == HEAD and credential == f"Bearer {self._token}":
            self._serve_head(stream)

    def _serve_head(self, stream: ServerConnection) -> None:
        with self._notifying():
            self._head = stream
            self.heads += 1
        try:
            for text in stream:
                with self._notifying():
                    self.received.append(json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            with self._notifying():
                if self._head is stream:
                    self._head = None

    def _serve_link(self, stream: ServerConnection, token: str) -> None:
        with self._notifying():
            self._links[token] = stream
        # The test reads it; the server closes it once this returns.
        stream.recv_events_thread.join()

    @contextmanager
    def _notifying(self) -> Iterator[None]:
        with self._changed:
            yield
            self._changed.notify_all()
