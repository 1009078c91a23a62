"""The streams that the heads of attempts have open: few of each, also of those without `hello`."""

from __future__ import annotations

import asyncio

from jobs.errors import PortalBusyError
from jobs.gateway.background import Background
from jobs.gateway.listeners import Connection

# A head has one; former ones may not have noticed yet that they are lost.
MOST_OF_ATTEMPT = 4
HELLO_S = 10.0


class HeadSlots:
    """The connections of heads, from their admission to their end, by attempt."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._open: dict[int, set[Connection]] = {}

    @property
    def attempts(self) -> list[int]:
        """The attempts whose heads have streams here."""
        return list(self._open)

    def take(self, attempt_id: int, connection: Connection) -> None:
        """Count a connection. PortalBusyError: the attempt has as many as it may have."""
        taken = self._open.setdefault(attempt_id, set())
        if len(taken) >= MOST_OF_ATTEMPT:
            raise PortalBusyError(f"The attempt has {MOST_OF_ATTEMPT} connections of its head.")
        taken.add(connection)
        connection.on_unopened = lambda: self.free(attempt_id, connection)

    def free(self, attempt_id: int, connection: Connection) -> None:
        """Count a connection no longer."""
        taken = self._open.get(attempt_id, set())
        taken.discard(connection)
        if not taken:
            self._open.pop(attempt_id, None)

    def expect_hello(self, connection: Connection) -> asyncio.TimerHandle:
        """Close a connection soon, unless the returned timer is cancelled at its `hello`."""
        loop = asyncio.get_running_loop()
        return loop.call_later(HELLO_S, self._close, connection, 1008, "no hello")

    def close(self, attempt_id: int, why: str) -> None:
        """Close all connections of an attempt."""
        for connection in self._open.get(attempt_id, ()):
            self._close(connection, 1001, why)

    def _close(self, connection: Connection, code: int, why: str) -> None:
        self._background.start(connection.close(code, why))
