"""The control stream of a session, kept open: it requests links and signatures of the head.

A stream is lost silently when a network goes away. Pings find that within seconds; then all links
are cut as well, since they took the same way, and Monarch opens them again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from monarch_client.gateway.dialing import Dialer, FinalRefusalError
from monarch_client.runner.base.retry import Retry

PATH = "/gateway/v1/session"
PING_EVERY_S = 2.0
SILENCE_S = 5.0
ANSWER_S = 20.0
CLOSE_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
# The life of a ticket, until the portal states the limit.
_FIRST_LIMIT_S = 60.0

Report = Callable[..., None]


class LostError(Exception):
    """The end of the session; the message has the portal's reason, or none."""

    def __init__(self, reason: str, away_s: float = 0.0) -> None:
        super().__init__(reason)
        self.away_s = away_s


class RefusedError(Exception):
    """A refusal of one request of the session."""


class SessionStream:
    """The control stream. `run` keeps it open until the session is lost."""

    def __init__(
        self,
        dialer: Dialer,
        credential: str,
        report: Report,
        *,
        away_s: float = 0.0,
        away_limit_s: float | None = None,
    ) -> None:
        self._dialer = dialer
        self._credential = credential
        self._report = report
        self._fixed_limit_s = away_limit_s
        self._away_limit_s = away_limit_s or _FIRST_LIMIT_S
        self._away_since = time.monotonic() - away_s
        self._is_reported_away = away_s > 0
        self._stream: ClientConnection | None = None
        # Requests need the portal and the job's head. Either may be away for the same time.
        self._has_head = asyncio.Event()
        self._head_away_since: float | None = None
        self._pending: dict[tuple[str, int], asyncio.Future[dict[str, Any]]] = {}
        self._ids = itertools.count(1)
        self._heard_at = self._moved_at = 0.0
        # Called when the stream is lost: the links are cut.
        self.on_away: Callable[[], None] = lambda: None

    def note_progress(self) -> None:
        """Note that bytes of a link moved: the way to the portal works, however slow it is."""
        self._moved_at = time.monotonic()

    async def run(self) -> None:
        """Keep the stream open. LostError: the session ended, or was away for too long."""
        retry = Retry(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            try:
                stream = await asyncio.wait_for(
                    self._dialer.dial_proved(PATH, self._credential), max(0.1, self._left_s)
                )
                retry.succeeded()
                await self._use(stream)
            except FinalRefusalError as error:
                raise LostError(str(error), self._away_s) from error
            except (OSError, WebSocketException, asyncio.TimeoutError) as error:
                reason = str(error) or type(error).__name__
            if self._left_s <= 0:
                raise LostError(reason, self._away_s)
            await asyncio.sleep(retry.next_pause_s(self._left_s))

    async def close(self) -> None:
        """Report the end of the program, so that the portal ends the session."""
        if self._stream is not None:
            with suppress(WebSocketException, asyncio.TimeoutError):
                await self._stream.send(json.dumps({"op": "close"}))
                await asyncio.wait_for(self._stream.close(), CLOSE_S)

    async def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request; wait for its answer. RefusedError; TimeoutError: none came.

        The request is not repeated on a later stream: its answer may be gone with this one.
        """
        number = next(self._ids)
        await self._has_head.wait()
        stream = self._stream
        if stream is None:  # lost again
            raise TimeoutError
        key = _key_of(op, fields.get("link", number))
        answer = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            await stream.send(json.dumps({"op": op, "id": number, **fields}))
            found: dict[str, Any] = await asyncio.wait_for(answer, ANSWER_S)
        except ConnectionClosed as error:
            raise TimeoutError from error
        except asyncio.TimeoutError as error:  # another class before Python 3.11
            raise TimeoutError from error
        finally:
            if self._pending.get(key) is answer:
                del self._pending[key]
        if found["op"] == "refused":
            raise RefusedError(str(found.get("detail", "")))
        return found

    @property
    def _away_s(self) -> float:
        return time.monotonic() - self._away_since

    @property
    def _left_s(self) -> float:
        return self._away_limit_s - self._away_s

    async def _use(self, stream: ClientConnection) -> None:
        watch = asyncio.create_task(self._watch(stream))
        try:
            await self._serve(stream)
        finally:
            watch.cancel()
            was_open, self._stream = self._stream is not None, None
            self._has_head.clear()
            # A close handshake would wait for a network that is away.
            stream.transport.abort()
            if was_open:
                self._lose()

    async def _serve(self, stream: ClientConnection) -> None:
        while True:
            message = json.loads(await self._receive(stream))
            self._heard_at = time.monotonic()
            match message.get("op"):
                case "welcome":
                    self._welcome(stream, message)
                case "mesh":
                    self._report("mesh", mesh=message)
                    self._note_head()
                case "head_away":
                    self._miss_head()
                case "lost_hosts":
                    self._report("lost_hosts", ranks=message["ranks"])
                case "close":
                    raise LostError(str(message.get("detail", "")))
                case _:
                    self._resolve(message)

    async def _receive(self, stream: ClientConnection) -> str:
        """Return the next message. LostError: the head has been away for too long."""
        left_s = None
        if self._head_away_since is not None:
            left_s = self._head_away_since + self._away_limit_s - time.monotonic()
        try:
            return await asyncio.wait_for(stream.recv(decode=True), left_s)
        except asyncio.TimeoutError as error:
            away_s = time.monotonic() - (self._head_away_since or 0.0)
            await self.close()
            reason = "the job's head node is not connected to the portal"
            raise LostError(reason, away_s) from error

    def _miss_head(self) -> None:
        self._has_head.clear()
        if self._head_away_since is None:
            self._head_away_since = time.monotonic()
            self._report("head_away", limit_s=self._away_limit_s)

    def _note_head(self) -> None:
        if self._head_away_since is not None:
            self._report("head_back", away_s=time.monotonic() - self._head_away_since)
        self._head_away_since = None
        self._has_head.set()

    def _welcome(self, stream: ClientConnection, message: dict[str, Any]) -> None:
        self._credential = str(message["secret"])
        if self._fixed_limit_s is None:
            self._away_limit_s = float(message["away_limit_s"])
        self._report("session", session=message["session"], secret=self._credential)
        if self._is_reported_away:
            self._report("back", away_s=self._away_s)
        self._is_reported_away = False
        self._stream = stream

    def _lose(self) -> None:
        self._away_since = self._heard_at
        self._is_reported_away = True
        self._report("away", limit_s=self._away_limit_s)
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(TimeoutError())
        self.on_away()

    def _resolve(self, message: dict[str, Any]) -> None:
        for name in ("link", "id"):
            if name in message:
                answer = self._pending.get((name, int(message[name])))
                if answer is not None and not answer.done():
                    answer.set_result(message)
                return

    async def _watch(self, stream: ClientConnection) -> None:
        """Abort the stream once neither a ping is answered nor a link moves bytes."""
        while True:
            sent_at = time.monotonic()
            answer = asyncio.ensure_future(await stream.ping())
            while not answer.done():
                await asyncio.wait([answer], timeout=SILENCE_S)
                if time.monotonic() - max(sent_at, self._moved_at) >= SILENCE_S:
                    stream.transport.abort()
                    return
            self._heard_at = time.monotonic()
            await asyncio.sleep(PING_EVERY_S)


def _key_of(op: str, number: int) -> tuple[str, int]:
    return ("link" if op == "link" else "id", number)
