"""Control streams of the two ends, and the messages on them: JSON objects with the field `op`.

docs/explanation/gateway.md lists them. Unknown ones are ignored, so that either end may be newer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from websockets.exceptions import ConnectionClosed

from jobs.gateway.links import MOST_PENDING, Link
from jobs.gateway.listeners import Connection
from jobs.gateway.rates import Bucket, Meter
from jobs.statuses import GatewayKind

log = logging.getLogger(__name__)

Message = dict[str, Any]
# Above it a number is no number of a link, rank or request.
_LARGEST = 2**53
_LONGEST_CSR = 16 * 1024
# A message counts as one for each KiB of it. A session that sends more is read more slowly.
SESSION_MESSAGES_PER_S = 100.0
_COUNTED = 1024


class Stream:
    """A control stream: JSON text messages in both directions."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def send(self, op: str, /, **fields: Any) -> None:
        """Send a message; nothing if the stream has closed."""
        try:
            await self.connection.send(json.dumps({"op": op, **fields}))
        except ConnectionClosed:
            log.debug("stream closed before %s", op)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield messages until the stream closes. A message that is no object closes it."""
        try:
            async for text in self.connection:
                await self._pace(len(text))
                message = _object(text)
                if message is None:
                    await self.connection.close(1003, "not a JSON object with op")
                    return
                yield message
        except ConnectionClosed:
            return

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the stream."""
        await self.connection.close(code, reason)

    async def _pace(self, size: int) -> None:
        """Wait before a message of this size is handled."""


class HeadStream(Stream):
    """The control stream of an attempt's head node. `hello` is its first message."""

    def __init__(self, connection: Connection, attempt_id: int) -> None:
        super().__init__(connection)
        self.attempt_id = attempt_id
        self.hello: Message = {}
        # Whether it knows which sessions of its attempt go on.
        self.knows_sessions = False

    def has_rank(self, rank: int, group: str) -> bool:
        """Whether its hello lists this rank in the `group`: `workers` or `nodes`."""
        found = self.hello.get(group)
        listed = found if isinstance(found, list) else []
        return any(isinstance(each, dict) and number_in(each, "rank") == rank for each in listed)


class SessionStream(Stream):
    """The control stream of a session. `links`: those of the newest generations, by number.

    `signing`: the numbers of its requests for a signature, by the exchange's numbers.
    """

    def __init__(
        self,
        connection: Connection,
        session_id: int,
        attempt_id: int,
        meter: Meter,
        kind: GatewayKind,
    ) -> None:
        super().__init__(connection)
        self.session_id = session_id
        self.attempt_id = attempt_id
        self.meter = meter
        self.kind = kind
        self.links: dict[int, Link] = {}
        self.signing: dict[int, int] = {}
        self._messages = Bucket(SESSION_MESSAGES_PER_S)

    @property
    def is_full(self) -> bool:
        """Whether it has as many links as one session may have."""
        self.links = {number: each for number, each in self.links.items() if not each.is_done}
        return len(self.links) >= MOST_PENDING

    async def _pace(self, size: int) -> None:
        await self._messages.take(1 + size // _COUNTED)


def number_in(message: Message, name: str) -> int | None:
    """Return a field that is a number of a link, rank or request; None if it is not."""
    value = message.get(name)
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return value if is_one else None


def csr_in(message: Message) -> str | None:
    """Return the certificate request of a message; None if there is none, or it is too long."""
    csr = message.get("csr")
    return csr if isinstance(csr, str) and len(csr) <= _LONGEST_CSR else None


def _object(text: str | bytes) -> Message | None:
    try:
        message = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    is_one = isinstance(message, dict) and isinstance(message.get("op"), str)
    return message if is_one else None
