"""The gateway process: admits connections by their tokens, and serves them until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from django.conf import settings
from django.db import Error as DatabaseError
from websockets.http11 import Request, Response

from jobs.actions.attempts import gateway_streams as rows
from jobs.errors import DatabaseUnavailableError, PortalError, SessionRefusedError
from jobs.gateway.admission import Admission, hopped_from
from jobs.gateway.exchange import Exchange
from jobs.gateway.head_slots import HeadSlots
from jobs.gateway.hop import hop
from jobs.gateway.links import Link, Side
from jobs.gateway.listeners import TERMINAL, Connection, Listeners
from jobs.gateway.messages import Close, Hello, SessionLost
from jobs.gateway.streams import HeadStream, SessionStream
from jobs.gateway.terminals import serve_terminal
from jobs.ground.outages import is_database_away
from jobs.live.looking import in_thread
from jobs.models.gateway_session import AWAY_LIMIT

log = logging.getLogger(__name__)

LOOK_S = 2.0
# Between two checks of the rights of a session.
CHECK_S = 10.0
_PREFIX = "/gateway/"
_TERMINAL_ROUTE = "v1/terminal"
T = TypeVar("T")


class Gateway:
    """One gateway process."""

    def __init__(self) -> None:
        self.instance = secrets.token_hex(8)
        self.exchange = Exchange(self.instance)
        self.admission = Admission()
        self.heads = HeadSlots(self.exchange.background)
        self._address = settings.MPORTAL_GATEWAY_INTERNAL
        self.listeners = Listeners(self._admit)
        # Current sessions of the attempts that are connected here, with their attempts: those of
        # the last look, and those that were admitted since.
        self._known: dict[int, int] = {}
        # When the rights of connected sessions were checked last.
        self._checked_at: dict[int, float] = {}
        self._routes: dict[str, Callable[[Connection, str], Awaitable[None]]] = {
            "v1/session": self._admit_session,
            "v1/head": self._admit_head,
            "v1/link": self._admit_link,
            _TERMINAL_ROUTE: self._admit_terminal,
        }

    async def start(self) -> None:
        """Begin to accept connections."""
        self.listeners.receive_at(settings.MPORTAL_GATEWAY_SOCKET)
        if settings.MPORTAL_GATEWAY_LISTEN:
            await self.listeners.listen(settings.MPORTAL_GATEWAY_LISTEN)

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        await self.start()
        looking = asyncio.create_task(self._look_on())
        waiting = asyncio.create_task(ending.wait())
        await asyncio.wait({waiting, looking}, return_when=asyncio.FIRST_COMPLETED)
        has_failed = looking.done()
        waiting.cancel()
        looking.cancel()
        await self.listeners.end()
        if has_failed:
            # Without looks, leases expire and ended sessions stay open: the supervisor restarts.
            raise RuntimeError("the gateway's loop has ended")

    async def _admit(self, connection: Connection, request: Request) -> Response | None:
        """Answer a request that opens no stream; None if it does."""
        path = request.path.partition("?")[0]
        path = path.removeprefix(settings.FORCE_SCRIPT_NAME or "")
        if path == f"{_PREFIX}healthz":
            return connection.respond(HTTPStatus.OK, "ok\n")
        if not path.startswith(_PREFIX) or path.removeprefix(_PREFIX) not in self._routes:
            return connection.respond(HTTPStatus.NOT_FOUND, "There is nothing at this address.\n")
        # Checked before rows change: the library would answer only afterwards.
        return await self._open(connection, request, path) if connection.opens(request) else None

    async def _open(self, connection: Connection, request: Request, path: str) -> Response | None:
        """Open the stream of a route, here or at another process; the answer if it is refused."""
        token = _token_of(request, path)
        if not token:
            return _refusal(connection, SessionRefusedError("This needs a bearer token."))
        connection.client = self.admission.address_of(connection, request)
        try:
            address = (
                ""
                if hopped_from(request) is not None
                else await self._elsewhere(connection, path, token)
            )
            if address:
                return await hop(connection, request, address)
            await self._routes[path.removeprefix(_PREFIX)](connection, token)
        except SessionRefusedError as error:
            counted = await self.admission.count_unknown(connection.client, error)
            return _refusal(connection, counted)
        except PortalError as error:
            return _refusal(connection, error)
        except DatabaseError as error:
            log.warning("database away: %s", error, extra={"action": "gateway_admit"})
            return _refusal(connection, DatabaseUnavailableError())
        return None

    async def _elsewhere(self, connection: Connection, path: str, token: str) -> str:
        """Return the address of the process to which a connection belongs; "" for this one."""
        if path == f"{_PREFIX}v1/session":
            return await self._look_up(connection, rows.address_of_session, token, self.instance)
        instance, dot, _ = token.partition(".")
        if path == f"{_PREFIX}v1/link" and dot and instance != self.instance:
            return await self._look_up(connection, rows.address_of_instance, instance)
        return ""

    async def _look_up(
        self, connection: Connection, find: Callable[..., T], *arguments: object
    ) -> T:
        return await self.admission.look_up(connection.client, find, *arguments)

    async def _admit_session(self, connection: Connection, token: str) -> None:
        entry = await self._look_up(connection, rows.enter_session, token)
        connection.handle = partial(self._serve_session, entry)

    async def _admit_head(self, connection: Connection, token: str) -> None:
        entry = await self._look_up(connection, rows.enter_head, token)
        self.heads.take(entry.attempt_id, connection)
        connection.handle = partial(self._serve_head, entry.attempt_id)

    async def _admit_link(self, connection: Connection, token: str) -> None:
        found = self.exchange.take(token)
        if found is None:
            raise SessionRefusedError("This token of a link is unknown, used or expired.")
        connection.handle = partial(self._serve_link, *found)

    async def _admit_terminal(self, connection: Connection, token: str) -> None:
        await self._look_up(connection, rows.check_terminal, token)
        connection.handle = partial(self._serve_terminal, token)

    async def _serve_terminal(self, ticket: str, connection: Connection) -> None:
        connection.keep_alive(ends_silence=True)
        await serve_terminal(self.listeners.connect, ticket, connection)

    async def _serve_link(self, link: Link, side: Side, connection: Connection) -> None:
        connection.keep_alive(ends_silence=False)
        await link.serve(side, connection)

    async def _serve_session(self, entry: rows.SessionEntry, connection: Connection) -> None:
        self._known[entry.session_id] = entry.attempt_id
        meter = self.exchange.meter_of(entry.user_id, entry.job_id)
        session = SessionStream(connection, entry.session_id, entry.attempt_id, meter, entry.kind)
        connection.keep_alive(ends_silence=True)
        await session.send(
            "welcome",
            session=entry.session_id,
            secret=entry.secret,
            away_limit_s=AWAY_LIMIT.seconds,
        )
        await self.exchange.add_session(session)
        try:
            async for message in session.messages():
                if isinstance(message, Close):
                    await self._leave(session)
                    return
                await self.exchange.from_session(session, message)
        finally:
            if await self.exchange.remove_session(session):
                await self._note("away", rows.note_away, entry.session_id, meter.read())

    async def _leave(self, session: SessionStream) -> None:
        await self._note("leave", rows.leave_session, session.session_id)
        ended = {session.session_id: session.attempt_id}
        await self._end(ended, await in_thread(rows.reasons_of, list(ended)))

    async def _end(self, ended: Mapping[int, int], reasons: Mapping[int, str]) -> None:
        """Close the streams of sessions that have ended, and notify their heads."""
        unknown = "It was deleted with its job."
        end = self.exchange.end_session
        await asyncio.gather(*(end(pk, of, reasons.get(pk, unknown)) for pk, of in ended.items()))

    async def _serve_head(self, attempt_id: int, connection: Connection) -> None:
        head = HeadStream(connection, attempt_id)
        connection.keep_alive(ends_silence=True)
        silence = self.heads.expect_hello(connection)
        try:
            async for message in head.messages():
                if isinstance(message, Hello):
                    silence.cancel()
                    head.hello = message
                    await self._note("head", self._note_head, attempt_id, message)
                    await self.exchange.add_head(head)
                elif isinstance(message, SessionLost):
                    lost = (message.session, attempt_id, message.detail)
                    await self._note("lose", rows.lose_session, *lost)
                elif head.hello is not None:
                    await self.exchange.from_head(head, message)
        finally:
            silence.cancel()
            self.heads.free(attempt_id, connection)
            if await self.exchange.remove_head(head):
                await self._note("head", rows.drop_head, attempt_id, self.instance)

    def _note_head(self, attempt_id: int, hello: Hello) -> None:
        rows.note_head(attempt_id, self.instance, self._address, hello.fields)

    async def _note(self, action: str, write: Callable[..., object], *arguments: object) -> bool:
        """Whether the rows could be changed; while the database is away streams go on."""
        try:
            await in_thread(write, *arguments)
        except DatabaseError as error:
            if not is_database_away(error):
                raise
            log.warning("database away: %s", error, extra={"action": f"gateway_{action}"})
            return False
        return True

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except DatabaseError as error:
                log.warning("database away: %s", error, extra={"action": "gateway_look"})
            except Exception:
                log.exception("look failed", extra={"action": "gateway_look"})

    async def look(self) -> None:
        """Renew the rows of what is connected, and close what has ended.

        Closing is not awaited: a dead peer takes seconds, and leases would expire meanwhile.
        """
        await self._note_traffic()
        await self._check_rights()
        await self._end_sessions()
        await self._end_heads()
        await self._follow_heads()

    async def _end_heads(self) -> None:
        """Renew the leases of heads; close those of attempts that have ended or are elsewhere."""
        attempts = set(self.heads.attempts)
        for attempt_id in attempts - await in_thread(rows.open_attempts, list(attempts)):
            self.heads.close(attempt_id, "the attempt has ended")
        heads = dict(self.exchange.heads)
        if heads:
            kept = await in_thread(rows.renew_heads, list(heads), self.instance)
            for attempt_id in set(heads) - kept:
                why = "the attempt has ended, or is elsewhere"
                self.exchange.background.start(heads[attempt_id].close(1001, why))

    async def _follow_heads(self) -> None:
        """Close sessions whose heads are connected to another process: they dial, and hop there."""
        without = [
            s for s in self.exchange.sessions.values() if s.attempt_id not in self.exchange.heads
        ]
        if not without:
            return
        attempts = list({each.attempt_id for each in without})
        moved = await in_thread(rows.heads_elsewhere, attempts, self.instance)
        for session in without:
            if session.attempt_id in moved:
                why = "the head is connected to another process"
                self.exchange.background.start(session.close(1012, why))

    async def _check_rights(self) -> None:
        """End connected sessions without rights: worker processes may be busy, or away."""
        now = time.monotonic()
        checked = {pk: at for pk, at in self._checked_at.items() if pk in self.exchange.sessions}
        due = [pk for pk in self.exchange.sessions if checked.get(pk, 0.0) < now - CHECK_S]
        self._checked_at = {**checked, **dict.fromkeys(due, now)}
        if due:
            await in_thread(rows.end_without_rights, due)

    async def _note_traffic(self) -> None:
        meters = {pk: each.meter for pk, each in self.exchange.sessions.items()}
        if not meters:
            return
        news = {session_id: meter.read() for session_id, meter in meters.items()}
        try:
            await in_thread(rows.note_traffic, news)
        except Exception:
            for session_id, traffic in news.items():
                meters[session_id].put_back(traffic)
            raise

    async def _end_sessions(self) -> None:
        """End what was current at the last look, or came since, and is no more: heads clean up.

        A head that has connected since then may have missed ends: it gets all that go on.
        """
        here = {pk: each.attempt_id for pk, each in self.exchange.sessions.items()}
        attempts = {*self.exchange.heads, *here.values()}
        before = {**self._known, **here}
        current = await in_thread(rows.current_sessions, list(attempts)) if attempts else {}
        ended = {pk: of for pk, of in before.items() if of in attempts and pk not in current}
        reasons = await in_thread(rows.reasons_of, list(ended)) if ended else {}
        admitted = {pk: of for pk, of in self._known.items() if pk not in before}
        self._known = {**current, **admitted}
        self.exchange.background.start(self._end(ended, reasons))
        for attempt_id, head in self.exchange.heads.items():
            if attempt_id in attempts and not head.knows_sessions:
                of_head = [pk for pk, of in current.items() if of == attempt_id]
                self.exchange.background.start(self.exchange.name_sessions(head, of_head))


def _token_of(request: Request, path: str) -> str:
    """Return the bearer token, or that which a terminal's browser offers; "" if there is none."""
    if path != f"{_PREFIX}{_TERMINAL_ROUTE}":
        given = request.headers.get_all("Authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        found = token.strip() if scheme.lower() == "bearer" else ""
    else:
        offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol")).split(",")
        tickets = [each.strip() for each in offered if each.strip() != TERMINAL]
        found = tickets[0] if len(tickets) == 1 else ""
    return found if found.isascii() else ""


def _refusal(connection: Connection, error: PortalError) -> Response:
    response = connection.respond(HTTPStatus(error.http_status), f"{error.message}\n")
    if wait := getattr(error, "retry_after", None):
        response.headers["Retry-After"] = str(wait)
    return response


def run() -> None:
    """Run the gateway in this process until SIGTERM or SIGINT."""

    async def serve() -> None:
        await Gateway().run()  # made inside of the loop that it uses

    asyncio.run(serve())
