"""The head of an attempt at the portal's gateway: its control stream, and what it orders."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.base.certificates import CertificateError, sign_request
from monarch_client.runner.base.retry import Retry
from monarch_client.runner.gateway import dialing
from monarch_client.runner.gateway.admissions import Admissions
from monarch_client.runner.gateway.links import (
    NODE,
    WORKER,
    LinkRequest,
    Links,
    SessionLateError,
)
from monarch_client.runner.gateway.proxy_drivers import ProxyDrivers
from monarch_client.runner.gateway.websocket import GOING_AWAY, RefusedError
from monarch_client.runner.node_streams.dialing import Dialer
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S
from monarch_client.runner.vocabulary.messages import MALFORMED, object_in

if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable

    from monarch_client.runner.gateway.settings import HeadSettings
    from monarch_client.runner.gateway.websocket import WebSocket
    from monarch_client.runner.node_streams.dialing import OpenStream

PING_S = 10.0
SILENCE_S = 20.0
# Workers take the certificate also after the session, as long as it is valid.
LEAF_S = 900
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 2.0
# These answers seldom change: the portal has no gateway, or the attempt has ended for it.
_FINAL = frozenset({401, 403, 404, 409, 410, 426})
_LAST_PAUSE_OF_REFUSED_S = 30.0
_MAX_REQUEST_CHARS = 8192
_MAX_DETAIL = 300
_REFUSALS = {"dial": "dial_failed", "sign": "refused"}
_NAMES = ("id", "session", "link", "generation")


class Head:
    """The control stream, which is dialed again whenever it is lost; and the links."""

    def __init__(self, settings: HeadSettings) -> None:
        self._settings = settings
        self._stream: WebSocket | None = None
        self._proxies = ProxyDrivers(settings.proxies)
        dial = functools.partial(dialing.dial_link, settings)
        targets = {WORKER: settings.workers, NODE: settings.nodes}
        self._admissions = Admissions(_reports_dialer(settings))
        self._links = Links(targets, self._proxies, dial, self._admissions.admit)
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: list[int] = []

    async def run(self) -> None:
        """Stay connected until the task is cancelled."""
        retry, connected_at = Retry(_FIRST_PAUSE_S, _LAST_PAUSE_OF_REFUSED_S), time.monotonic()
        while True:
            longest_s = _LAST_PAUSE_S
            try:
                self._stream = await dialing.dial_head(self._settings)
                retry.succeeded()
                try:
                    await self._talk(self._stream)
                finally:
                    connected_at = time.monotonic()
            except RefusedError as error:
                is_final = error.status in _FINAL
                longest_s = _LAST_PAUSE_OF_REFUSED_S if is_final else _LAST_PAUSE_S
            except OSError:
                pass
            finally:
                self._stream = None
            if time.monotonic() - connected_at > MAX_AWAY_S:
                # The portal may have ended them. One that has not must still not come back late.
                for session in self._sessions():
                    self._start(self._end_session(session))
            await asyncio.sleep(retry.next_pause_s(longest_s))

    async def report_lost(self, rank: int) -> None:
        """Report that the host of a rank is lost, now and after each reconnection."""
        self._lost.append(rank)
        if self._stream is not None:
            await self._send_lost(self._stream)

    async def end(self) -> None:
        """Close all streams, since the attempt ends."""
        stream = self._stream
        await self._links.close()
        self._admissions.close()
        self._proxies.close()
        if stream is not None:
            await stream.close(GOING_AWAY, "the attempt ends")

    async def _talk(self, stream: WebSocket) -> None:
        pinging = asyncio.ensure_future(_keep_alive(stream))
        try:
            await stream.send_text(_text_of(self._settings.hello))
            if self._lost:
                await self._send_lost(stream)
            while True:
                message = await stream.receive()
                await self._obey_or_refuse(message.content)
        finally:
            pinging.cancel()
            stream.abort()

    async def _send_lost(self, stream: WebSocket) -> None:
        await stream.send_text(_text_of({"op": "lost_hosts", "ranks": sorted(set(self._lost))}))

    async def _obey_or_refuse(self, content: bytes) -> None:
        """Refuse one malformed order: the other sessions need this stream."""
        order: dict[str, Any] = {}
        try:
            order = object_in(content)
            self._obey(order)
        except MALFORMED as error:
            refusal = _REFUSALS.get(str(order.get("op")))
            if refusal is not None:
                named = {key: order[key] for key in _NAMES if type(order.get(key)) is int}
                detail = f"The order is malformed: {error!r}"[:_MAX_DETAIL]
                await self._answer(op=refusal, **named, detail=detail)

    def _obey(self, order: dict[str, Any]) -> None:
        """Begin what the portal orders; orders that this version does not know are skipped."""
        if order["op"] == "dial":
            request = LinkRequest.parse(order)
            if request.kind == NODE:
                self._admissions.open(request.session, str(order.get("session_kind", "")))
            link = self._links.open(request)
            if link is not None:
                self._start(self._watch(request, link))
        elif order["op"] == "sign":
            self._start(self._sign(order["id"], int(order["session"]), str(order["csr"])))
        elif order["op"] == "close":
            self._start(self._forget_session(int(order["session"])))
        elif order["op"] == "sessions":
            # Some may have ended while this process, or the portal, was away.
            for session in self._sessions() - set(map(int, order["sessions"])):
                self._start(self._forget_session(session))

    def _sessions(self) -> set[int]:
        return self._links.sessions() | self._proxies.sessions() | self._admissions.sessions()

    async def _end_session(self, session: int) -> None:
        # Nodes end what they serve when they get the report; links do not wait for one that hangs.
        self._admissions.end(session)
        await self._links.close(session)
        self._proxies.close(session)

    async def _forget_session(self, session: int) -> None:
        await self._end_session(session)
        self._links.forget(session)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, request: LinkRequest, link: asyncio.Task[None]) -> None:
        """Report a link that could not be opened; the end of one that was is no fault."""
        await asyncio.wait([link])
        error = None if link.cancelled() else link.exception()
        if isinstance(error, SessionLateError):
            await self._answer(op="session_lost", session=request.session, detail=str(error))
        elif error is not None:
            await self._answer(
                op="dial_failed",
                session=request.session,
                link=request.number,
                generation=request.generation,
                detail=str(error),
            )

    async def _sign(self, number: object, session: int, request: str) -> None:
        authority = self._settings.authority
        try:
            if authority is None or len(request) > _MAX_REQUEST_CHARS:
                why = "this attempt has no authority" if authority is None else "it is too large"
                raise CertificateError(why)
            work = functools.partial(
                sign_request,
                authority,
                request,
                f"laptop {session}",
                LEAF_S,
                self._settings.python,
            )
            signed = await asyncio.get_running_loop().run_in_executor(None, work)
        except (CertificateError, OSError) as error:
            detail = f"The head node could not sign the certificate: {error}."
            await self._answer(op="refused", id=number, session=session, detail=detail)
        else:
            await self._answer(op="signed", id=number, session=session, **signed._asdict())

    async def _answer(self, **fields: Any) -> None:
        """Send an answer; if the stream was lost, the portal asks again."""
        stream = self._stream
        if stream is not None:
            try:
                await stream.send_text(_text_of(fields))
            except OSError:
                stream.abort()


def _text_of(fields: dict[str, Any]) -> str:
    """Return a message. Half of a character, which is no JSON for the portal, becomes "?"."""
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace").decode()


def _reports_dialer(settings: HeadSettings) -> Callable[[int], Awaitable[OpenStream]]:
    """Return what opens the stream of reports to the node of a rank."""
    port = settings.nodes[0][1] if settings.nodes else 0
    addresses, folder = [host for host, _ in settings.nodes], Path(settings.certificates)
    dialer = Dialer(addresses, port, folder)
    return lambda rank: dialer.dial(rank, "sessions")


async def _keep_alive(stream: WebSocket) -> None:
    while stream.silent_s < SILENCE_S:
        await stream.ping()
        await asyncio.sleep(PING_S)
    stream.abort()
