"""A client of Monarch's mesh admin: a few requests at once, all bounded."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    import ssl
    from typing import Any, Sequence

# Monarch accepts few requests at once, and the user may send some as well.
AT_ONCE = 2
# A busy admin answers with this code, and the request is repeated.
_BUSY, _BUSY_PAUSE_S, _MOST_TRIES = "service_unavailable", 0.05, 20
# The admin itself gives a host 3 seconds.
TIMEOUT_S = 6.0
_MOST_BYTES = 1024 * 1024
_OK = 200
_MAX_MESSAGE_CHARS = 300


class Answer(NamedTuple):
    """The admin's answer about a node. Without an answer `status` is 0 and `code` is empty."""

    status: int
    node: dict[str, Any]
    code: str
    message: str

    @property
    def is_ok(self) -> bool:
        """Whether the answer contains the node."""
        return self.status == _OK

    def of(self, kind: str) -> dict[str, Any]:
        """Return the properties of a node of `kind`; {} if the node is of another kind."""
        properties = self.node.get("properties")
        found = properties.get(kind) if isinstance(properties, dict) else None
        return found if isinstance(found, dict) else {}

    def references(self, *names: str) -> list[str]:
        """Return the references in a list of the node, at the path `names`."""
        value: Any = self.node
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


class MeshAdmin:
    """An admin at the port of `url` on this machine, over a few persistent connections."""

    def __init__(self, url: str, context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        self._port = parts.port or 0
        self._context = context if parts.scheme == "https" else None
        self._is_encrypted = parts.scheme == "https"
        self._idle: deque[http.client.HTTPConnection] = deque()

    def ask(self, reference: str) -> Answer:
        """Request one node: "root", or a reference that another node contains."""
        began_at = time.monotonic()
        try:
            # A reference may hold what no path can: that is a ValueError, too.
            answer = self._get("/v1/" + quote(reference, safe=""))
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            took_s = time.monotonic() - began_at
            return Answer(0, {}, "", f"no answer in {took_s:.1f} s ({error!r:.200})")
        return answer

    def ask_root(self) -> Answer:
        """Request the root, which lists the hosts."""
        return self._ask_again("root") or Answer(0, {}, _BUSY, "it was busy all the time")

    def ask_all(self, references: Sequence[str], until: float) -> list[Answer | None]:
        """Request each node; None for those that were not requested by `until`."""
        answers: list[Answer | None] = [None] * len(references)
        waiting = deque(enumerate(references))

        def work() -> None:
            while time.monotonic() < until:
                try:
                    place, reference = waiting.popleft()
                except IndexError:
                    return
                answers[place] = self._ask_again(reference)

        threads = [
            threading.Thread(target=work, daemon=True, name="mesh-ask")
            for _ in range(min(AT_ONCE, len(references)) - 1)
        ]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
        return answers

    def _ask_again(self, reference: str) -> Answer | None:
        """Request a node again while the admin is busy; None if it stays busy."""
        for _ in range(_MOST_TRIES):
            answer = self.ask(reference)
            if answer.code != _BUSY:
                return answer
            time.sleep(_BUSY_PAUSE_S)
        return None

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def _get(self, path: str) -> Answer:
        try:
            return self._get_over(self._idle.pop(), path)
        except TimeoutError:
            raise
        except (IndexError, OSError, http.client.BadStatusLine):
            # None is kept, or the other side has closed it meanwhile: not yet a failure.
            return self._get_over(self._connect(), path)

    def _get_over(self, connection: http.client.HTTPConnection, path: str) -> Answer:
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read(_MOST_BYTES + 1)
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        if len(body) > _MOST_BYTES:
            connection.close()
            raise ValueError(f"an answer of more than {_MOST_BYTES} bytes")
        self._idle.append(connection)
        return _answer(response.status, body)

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_encrypted:
            return http.client.HTTPSConnection(
                "127.0.0.1", self._port, timeout=TIMEOUT_S, context=self._context
            )
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)


def _answer(status: int, body: bytes) -> Answer:
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    if status == _OK:
        return Answer(status, content, "", "")
    error = content.get("error")
    fields = error if isinstance(error, dict) else {}
    code, text = str(fields.get("code", "")), str(fields.get("message", ""))
    message = f"{status} {code}: {text}" if code else str(status)
    return Answer(status, {}, code[:100], message[:_MAX_MESSAGE_CHARS])
