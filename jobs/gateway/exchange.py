"""The exchange: which heads and sessions are connected here, and what they send one another."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from weakref import WeakValueDictionary

from django.conf import settings

from jobs.gateway.background import Background
from jobs.gateway.links import Link, Side
from jobs.gateway.messages import (
    DialFailed,
    LostHosts,
    Message,
    Refused,
    Sign,
    Signed,
)
from jobs.gateway.messages import Link as LinkRequest
from jobs.gateway.rates import Bucket, Meter
from jobs.gateway.streams import HeadStream, SessionStream
from jobs.statuses import GatewayKind
from monarch_client.runner.gateway.links import NODE, PROXY, WORKER

# What the hello of a head calls the targets of links, by their kind.
_GROUPS = {WORKER: "workers", PROXY: "workers", NODE: "nodes"}
# Unanswered requests for a signature, of one session.
MOST_SIGNING = 8
_NO_HEAD = "The head node is not connected."


class Exchange:
    """The streams and links of one gateway process. Used in its event loop alone."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self.heads: dict[int, HeadStream] = {}
        self.sessions: dict[int, SessionStream] = {}
        self.background = Background()
        # The oldest first.
        self._tokens: dict[str, tuple[Link, Side]] = {}
        self._ids = itertools.count(1)
        self._signing: dict[int, SessionStream] = {}
        # Kept as long as a session has them.
        self._buckets: WeakValueDictionary[tuple[str, int], Bucket] = WeakValueDictionary()

    def meter_of(self, user_id: int, job_id: int) -> Meter:
        """Return a meter that shares the buckets of the user and of the job."""
        rate = settings.MPORTAL_GATEWAY_MB_PER_S * 1_000_000
        keys = [("user", user_id), ("job", job_id)]
        return Meter(tuple(self._buckets.setdefault(key, Bucket(rate)) for key in keys))

    async def add_head(self, head: HeadStream) -> None:
        """Connect sessions with a head that has sent its hello."""
        former = self.heads.get(head.attempt_id)
        self.heads[head.attempt_id] = head
        # A head may send its hello again, when it has changed.
        sessions = self._sessions_of(head.attempt_id)
        if former is not None and former is not head:
            self.background.start(former.close(1001, "replaced"))
            for session in sessions:
                self._forget_signing(session)
        await asyncio.gather(*(self._send_mesh(each, head) for each in sessions))

    async def name_sessions(self, head: HeadStream, current: Iterable[int]) -> None:
        """Send a head the sessions that go on, so that it ends what others left there."""
        # One that was opened since `current` was read may have links already.
        connected = [each.session_id for each in self._sessions_of(head.attempt_id)]
        head.knows_sessions = True
        await head.send("sessions", sessions=sorted({*current, *connected}))

    async def remove_head(self, head: HeadStream) -> bool:
        """Whether the head was the current one of its attempt; its sessions are notified."""
        if self.heads.get(head.attempt_id) is not head:
            return False
        del self.heads[head.attempt_id]
        for session in self._sessions_of(head.attempt_id):
            self._forget_signing(session)
            self.background.start(session.send("head_away"))
            self._close_links(session)
        return True

    async def add_session(self, session: SessionStream) -> None:
        """Connect a session, in place of its former stream."""
        former = self.sessions.get(session.session_id)
        self.sessions[session.session_id] = session
        if former is not None:
            self._close_links(former)
            self.background.start(former.close(1001, "replaced"))
        head = self.heads.get(session.attempt_id)
        if head is None:
            await session.send("head_away")
        else:
            await self._send_mesh(session, head)

    async def remove_session(self, session: SessionStream) -> bool:
        """Whether the stream was the current one of its session; its links are closed."""
        self._close_links(session)
        self._forget_signing(session)
        if self.sessions.get(session.session_id) is not session:
            return False
        del self.sessions[session.session_id]
        return True

    async def end_session(self, session_id: int, attempt_id: int, detail: str) -> None:
        """Have both ends close a session that has ended; `detail` says why."""
        head = self.heads.get(attempt_id)
        if head is not None:
            self.background.start(head.send("close", session=session_id))
        stream = self.sessions.get(session_id)
        if stream is not None:
            stream.has_ended = True
            await stream.send("close", detail=detail)
            await stream.close(1000, "ended")

    def take(self, token: str) -> tuple[Link, Side] | None:
        """Return the link and the side of a token, which is valid once; None if there is none."""
        self._drop_late()
        return self._tokens.pop(token, None)

    async def from_session(self, session: SessionStream, message: Message) -> None:
        """Handle a message of a session, unless it has ended or connected again."""
        if session.has_ended or self.sessions.get(session.session_id) is not session:
            return
        match message:
            case LinkRequest():
                await self._link(session, message)
            case Sign():
                await self._sign(session, message)

    async def from_head(self, head: HeadStream, message: Message) -> None:
        """Handle a message of a head, which reaches sessions of its own attempt only."""
        match message:
            case Signed() | Refused():
                session = self._signing.get(message.id)
                if session is not None and session.attempt_id == head.attempt_id:
                    del self._signing[message.id]
                    number = session.signing.pop(message.id)
                    await session.send(message.op, **{**message.fields, "id": number})
            case LostHosts():
                sessions = self._sessions_of(head.attempt_id)
                await asyncio.gather(
                    *(each.send(message.op, **message.fields) for each in sessions)
                )
            case DialFailed():
                await self._give_up(head, message)

    async def _link(self, session: SessionStream, message: LinkRequest) -> None:
        number, generation = message.link, message.generation
        known = {"link": number, "generation": generation}
        if (former := session.links.pop(number, None)) is not None:
            former.cut()
            self._drop_tokens(former)
        head = self.heads.get(session.attempt_id)
        why = _why_no_link(session, head, message)
        if head is None or why:
            await session.send("refused", **known, detail=why)
            return
        link = Link(session.session_id, number, generation, session.meter, self._instance)
        session.links[number] = link
        self._drop_late()
        for side, token in link.tokens.items():
            self._tokens[token] = (link, side)
        await head.send(
            "dial",
            session=session.session_id,
            session_kind=session.kind.value,
            **known,
            rank=message.rank,
            kind=message.kind,
            token=link.tokens[Side.HEAD],
        )
        await session.send("dial", **known, token=link.tokens[Side.PROGRAM])

    async def _give_up(self, head: HeadStream, message: DialFailed) -> None:
        """Close a link whose worker the head does not reach: the program dials anew."""
        session = self.sessions.get(message.session)
        if session is None or session.attempt_id != head.attempt_id:
            return
        link = session.links.get(message.link)
        if link is not None and link.generation == message.generation:
            await link.fail(message.detail)

    async def _sign(self, session: SessionStream, message: Sign) -> None:
        head = self.heads.get(session.attempt_id)
        if head is None or len(session.signing) >= MOST_SIGNING:
            why = _NO_HEAD if head is None else "Too many requests."
            await session.send("refused", id=message.id, detail=why)
            return
        # Sessions have their own numbers: the head's answers name the exchange's number.
        number = next(self._ids)
        self._signing[number] = session
        session.signing[number] = message.id
        await head.send("sign", id=number, session=session.session_id, csr=message.csr)

    async def _send_mesh(self, session: SessionStream, head: HeadStream) -> None:
        if head.hello is not None:
            await session.send("mesh", **head.hello.fields)

    def _close_links(self, session: SessionStream) -> None:
        links, session.links = list(session.links.values()), {}
        for link in links:
            self._drop_tokens(link)
            self.background.start(link.close())

    def _drop_tokens(self, link: Link) -> None:
        for token in link.tokens.values():
            self._tokens.pop(token, None)

    def _drop_late(self) -> None:
        while self._tokens and (oldest := next(iter(self._tokens.values()))[0]).is_late:
            self._drop_tokens(oldest)

    def _forget_signing(self, session: SessionStream) -> None:
        """Forget requests whose answers cannot come anymore; programs repeat them."""
        for number in session.signing:
            del self._signing[number]
        session.signing.clear()

    def _sessions_of(self, attempt_id: int) -> list[SessionStream]:
        return [each for each in self.sessions.values() if each.attempt_id == attempt_id]


def _why_no_link(session: SessionStream, head: HeadStream | None, target: LinkRequest) -> str:
    """Return why a session gets no link to this rank and kind, or ""."""
    if head is None:
        return _NO_HEAD
    if session.is_full:
        return "Too many links."
    kind = target.kind
    if kind not in _GROUPS or (session.kind != GatewayKind.ATTACH and kind != NODE):
        return "There are no links of this kind."
    if not head.has_rank(target.rank, _GROUPS[kind]):
        what = "node" if kind == NODE else "worker"
        return f"The job has no {what} of this rank."
    return ""
