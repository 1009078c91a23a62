"""Control streams of the two ends, and what is known of each."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.exceptions import ConnectionClosed

from jobs.gateway.links import MOST_PENDING, Link
from jobs.gateway.listeners import Connection
from jobs.gateway.messages import (
    Hello,
    Message,
    RefusedMessageError,
    decode_from_head,
    decode_from_session,
)
from jobs.gateway.rates import Bucket, Meter
from jobs.ground.messages import MalformedMessageError
from jobs.statuses import GatewayKind

log = logging.getLogger(__name__)

SESSION_MESSAGES_PER_S = 100.0
# It answers all sessions of its attempt.
HEAD_MESSAGES_PER_S = 400.0
_COUNTED = 1024


class Stream:
    """A control stream: JSON text messages in both directions, and so many a second from its end.

    A message counts as one for each KiB of it. An end that sends more is read more slowly.
    """

    decode: Callable[[str], Any]

    def __init__(self, connection: Connection, messages_per_s: float) -> None:
        self.connection = connection
        self._messages = Bucket(messages_per_s)

    async def send(self, op: str, /, **fields: Any) -> None:
        """Send a message; nothing if the stream has closed."""
        try:
            await self.connection.send(json.dumps({"op": op, **fields}))
        except ConnectionClosed:
            log.debug("stream closed before %s", op)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield messages until the stream closes. A message that is no object closes it.

        One of an unknown kind is skipped; one whose fields do not fit is answered `refused`.
        """
        try:
            async for text in self.connection:
                await self._messages.take(1 + len(text) // _COUNTED)
                try:
                    message = await self._decoded(text)
                except MalformedMessageError:
                    await self.connection.close(1003, "not a JSON object with op")
                    return
                if message is not None:
                    yield message
        except ConnectionClosed:
            return

    async def _decoded(self, text: str | bytes) -> Message | None:
        if isinstance(text, bytes):
            raise MalformedMessageError("a control message is text")
        try:
            found: Message | None = self.decode(text)
        except RefusedMessageError as error:
            await self.send("refused", **error.answer)
            return None
        return found

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the stream."""
        await self.connection.close(code, reason)


class HeadStream(Stream):
    """The control stream of an attempt's head node. `hello` is its first message."""

    decode = staticmethod(decode_from_head)

    def __init__(self, connection: Connection, attempt_id: int) -> None:
        super().__init__(connection, HEAD_MESSAGES_PER_S)
        self.attempt_id = attempt_id
        self.hello: Hello | None = None
        # Whether it knows which sessions of its attempt go on.
        self.knows_sessions = False

    def has_rank(self, rank: int, group: str) -> bool:
        """Whether its hello lists this rank in the `group`: `workers` or `nodes`."""
        listed = getattr(self.hello, group, ())
        return any(each.rank == rank for each in listed)


class SessionStream(Stream):
    """The control stream of a session. `links`: those of the newest generations, by number.

    `signing`: the numbers of its requests for a signature, by the exchange's numbers.
    """

    decode = staticmethod(decode_from_session)

    def __init__(
        self,
        connection: Connection,
        session_id: int,
        attempt_id: int,
        meter: Meter,
        kind: GatewayKind,
    ) -> None:
        super().__init__(connection, SESSION_MESSAGES_PER_S)
        self.session_id = session_id
        self.attempt_id = attempt_id
        self.meter = meter
        self.kind = kind
        # The head is told no more of it then: it would take the session for an open one.
        self.has_ended = False
        self.links: dict[int, Link] = {}
        self.signing: dict[int, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether it has as many links as one session may have."""
        self.links = {number: each for number, each in self.links.items() if not each.is_done}
        return len(self.links) >= MOST_PENDING
