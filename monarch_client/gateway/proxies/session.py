"""A session of mesh proxies: requests go out in order, results arrive when they are there.

An event loop in a thread owns the connection. It reconnects by itself; messages of both sides are
kept until they have arrived, so a future survives the loss.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import itertools
import logging
import pickle
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from monarch_client.attaching.errors import SessionLostError
from monarch_client.gateway.proxies.errors import ProxyError, error_of
from monarch_client.gateway.proxies.futures import FutureProxy
from monarch_client.gateway.proxies.references import Reference
from monarch_client.runner.scripts.mportal_proxies.channel import (
    VERSION,
    Channel,
    read_hello,
    send_hello,
)
from monarch_client.runner.scripts.mportal_proxies.classes import find_imported
from monarch_client.runner.scripts.mportal_proxies.codec import Codec, CodecError, outline

Dial = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

_REDIAL_S = (0.1, 2.0)
_HELLO_S = 130.0  # the first one waits until the meshes are attached
_FIRST_S = 30.0
_GOODBYE_S = 5.0
_log = logging.getLogger("monarch_client.gateway.proxies")


@dataclass
class _Pending:
    """A request that has no result yet: its futures, and what makes a result of the answer."""

    futures: list[concurrent.futures.Future[Any]]
    convert: Callable[[Any], Any] | None
    left: int


class ProxySession:
    """The connection to the process on the cluster that makes the calls of this program."""

    def __init__(
        self, dial: Dial, *, away_limit_s: float, pickle_arguments: bool, pickle_results: bool
    ) -> None:
        self._dial = dial
        self._away_limit_s = away_limit_s
        self._options = {"pickle": pickle_arguments, "pickle_results": pickle_results}
        self._codec = Codec(
            find_imported,
            reference=self._reference,
            pickle=_dumps if pickle_arguments else None,
            # Only at the user's explicit request: the cluster could run code here.
            unpickle=pickle.loads if pickle_results else None,
        )
        self._key = secrets.token_urlsafe(32)
        self._driver: str | None = None
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._forgotten: deque[int] = deque()
        self._lost: Exception | None = None
        self._closing = threading.Event()
        self._seen = time.monotonic()
        self._lock = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._channel = Channel(self._receive)
        self._welcome: concurrent.futures.Future[dict[str, Any]] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="mesh-proxies", daemon=True)

    def open(self) -> dict[str, dict[str, Any]]:
        """Connect, and return id and sizes of each mesh. ProxyError: the session was refused."""
        self._thread.start()
        atexit.register(self.close)
        meshes: dict[str, dict[str, Any]] = self._welcome.result()["meshes"]
        return meshes

    def close(self) -> None:
        """End the session, and with it the processes that it started."""
        atexit.unregister(self.close)
        if self._thread.is_alive() and not self._closing.is_set():
            if self._lost is None:
                self.post({"op": "bye"})
            self._closing.set()
            with suppress(RuntimeError):  # the thread has just ended
                self._loop.call_soon_threadsafe(self._goodbye)
            self._thread.join(_GOODBYE_S + 1)

    def lose(self, error: Exception) -> None:
        """Raise the error from all futures and later requests. Called from any thread."""
        with suppress(RuntimeError):  # the thread has ended
            self._loop.call_soon_threadsafe(self._end, error)

    def new_number(self) -> int:
        """Return an id for a request or a mesh."""
        return next(self._numbers)

    def forget(self, number: int) -> None:
        """Have the cluster forget a mesh id. Safe in a finalizer: it goes with the next message."""
        self._forgotten.append(number)

    def post(self, message: dict[str, Any]) -> None:
        """Send a message that has no answer."""
        encoded = [self._codec.encode(message)]
        if self._forgotten:
            numbers = [self._forgotten.popleft() for _ in range(len(self._forgotten))]
            encoded.append(self._codec.encode({"op": "drop", "ids": numbers}))
        with self._lock:
            if threading.current_thread() is not self._thread:
                self._lock.wait_for(lambda: self._lost or self._has_room())
            if self._lost is not None:
                raise self._lost
            for each in encoded:
                self._loop.call_soon_threadsafe(self._channel.send, each)

    def request(
        self, message: dict[str, Any], convert: Callable[[Any], Any] | None = None
    ) -> list[FutureProxy[Any]]:
        """Send a message, and return a future for each of its results."""
        number, count = self.new_number(), message.get("count", 1)
        futures: list[concurrent.futures.Future[Any]] = [
            concurrent.futures.Future() for _ in range(count)
        ]
        self._pending[number] = _Pending(futures, convert, count)
        try:
            self.post({**message, "id": number})
        except Exception:
            del self._pending[number]
            raise
        cancel = (lambda: self._cancel(number)) if count == 1 else None
        return [FutureProxy(future, cancel) for future in futures]

    def _cancel(self, number: int) -> None:
        self._pending.pop(number, None)
        if self._lost is None:
            self.post({"op": "cancel", "id": number})

    def _has_room(self) -> bool:
        return not self._channel.outbox.is_full

    def _reference(self, value: Any) -> int | None:
        if not isinstance(value, Reference):
            return None
        number = value._number_in(self)
        if number is None:
            raise CodecError("the mesh belongs to another session")
        return number

    # What follows runs in the thread of the event loop.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._serving = self._loop.create_task(self._stay_connected())
            self._loop.run_until_complete(self._serving)
        except asyncio.CancelledError:
            pass  # closed while it was away
        except Exception as error:  # noqa: BLE001 - the futures get it
            self._lose(error)
        finally:
            self._lose(SessionLostError("The session was closed."))
            self._loop.run_until_complete(self._end_tasks())
            self._loop.close()

    async def _stay_connected(self) -> None:
        self._notifier = asyncio.ensure_future(self._notify_of_room())
        delay, reason = _REDIAL_S[0], ""
        while not self._closing.is_set():
            before = self._seen
            try:
                await self._serve_connection()
            except (OSError, EOFError, asyncio.TimeoutError) as error:
                reason = str(error) or repr(error)
            if self._closing.is_set():
                return
            if self._seen > before:
                delay = _REDIAL_S[0]
            self._check_away(time.monotonic() - self._seen, reason)
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
            delay = min(2 * delay, _REDIAL_S[1])

    def _check_away(self, away: float, reason: str) -> None:
        if self._driver is None and away > min(_FIRST_S, self._away_limit_s):
            raise ProxyError(f"The job could not be reached within {away:.0f} s: {reason}.")
        if away > self._away_limit_s:
            raise SessionLostError(
                f"The job could not be reached for {away:.0f} s ({reason}). What the session "
                "started there ends: connect again.",
                away,
            )

    async def _serve_connection(self) -> None:
        reader, writer = await self._dial()
        try:
            hello = {
                "version": VERSION,
                "key": self._key,
                "driver": self._driver,
                "received": self._channel.handled,
                "options": self._options,
            }
            await send_hello(writer, hello)
            welcome = await asyncio.wait_for(read_hello(reader), _HELLO_S)
            if "refused" in welcome:
                raise self._refusal(welcome["refused"])
            self._driver = welcome["driver"]
            if not self._welcome.done():
                self._welcome.set_result(welcome)
            try:
                await self._channel.run(reader, writer, welcome["received"])
            finally:
                self._seen = time.monotonic()
        finally:
            # The driver has closed its end, or does not answer: nothing is worth waiting for.
            writer.transport.abort()

    def _refusal(self, reason: str) -> Exception:
        if self._driver is None:
            return ProxyError(f"The session was refused: {reason}.")
        return SessionLostError(f"The session is lost: {reason}.")

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Transports that were aborted close in the next rounds of the loop.
        for _ in range(5):
            await asyncio.sleep(0)
        await self._loop.shutdown_default_executor()

    async def _notify_of_room(self) -> None:
        while True:
            await self._channel.wait_for_progress()
            with self._lock:
                self._lock.notify_all()

    def _end(self, error: Exception) -> None:
        self._lose(error)
        self._channel.disconnect()
        if self._serving is not None:
            self._serving.cancel()

    def _goodbye(self) -> None:
        """End the connection when the goodbye has arrived, or after a while."""
        if not self._channel.is_connected and self._serving is not None:
            self._serving.cancel()
        self._loop.call_later(_GOODBYE_S, self._channel.disconnect)

    def _receive(self, encoded: bytearray) -> None:
        try:
            message = self._codec.decode(encoded)
        except Exception as error:  # noqa: BLE001 - of whatever was sent
            message = {**outline(encoded), "op": "undecoded", "reason": error}
        if message["op"] == "fault":
            _log.error("Monarch reported a fault on the cluster: %s", message["text"])
        else:
            self._settle(message)
        self._channel.note_handled(encoded)

    def _settle(self, message: dict[str, Any]) -> None:
        """Set the result or the exception of a future."""
        pending = self._pending.get(message.get("id", 0))
        if pending is None:  # canceled
            return
        pending.left -= 1
        if pending.left == 0:
            del self._pending[message["id"]]
        future = pending.futures[message.get("position", 0)]
        if not future.set_running_or_notify_cancel():
            return
        if message["op"] == "result":
            result = message["result"]
            future.set_result(pending.convert(result) if pending.convert else result)
        elif message["op"] == "undecoded":
            future.set_exception(message["reason"])
        else:
            future.set_exception(error_of(message["error"], self._codec))

    def _lose(self, error: Exception) -> None:
        """Fail all futures, and every later request."""
        with self._lock:
            if self._lost is None:
                self._lost = error
            self._lock.notify_all()
        if not self._welcome.done():
            self._welcome.set_exception(error)
        for number in list(self._pending):
            pending = self._pending.pop(number, None)
            for future in pending.futures if pending else ():
                if not future.done() and future.set_running_or_notify_cancel():
                    future.set_exception(self._lost)


def _dumps(value: Any) -> bytes:
    try:
        import cloudpickle  # noqa: PLC0415 - optional
    except ImportError:
        return pickle.dumps(value)
    data: bytes = cloudpickle.dumps(value)
    return data
