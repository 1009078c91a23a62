"""The exchange: which heads and sessions are connected here, and what they send one another."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings

from jobs.gateway.links import Link, Side
from jobs.gateway.rates import Bucket, Meter
from jobs.gateway.streams import HeadStream, Message, SessionStream, csr_in, number_in

# What heads send to all sessions of their attempt.
_TO_ALL = frozenset({"lost_hosts"})


class Exchange:
    """The streams and links of one gateway process. Used in its event loop alone."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self.heads: dict[int, HeadStream] = {}
        self.sessions: dict[int, SessionStream] = {}
        self._tokens: dict[str, tuple[Link, Side]] = {}
        self._ids = itertools.count(1)
        self._signing: dict[int, tuple[SessionStream, Any]] = {}
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
        if former is not None and former is not head:
            await former.close(1001, "replaced")
        for session in self._sessions_of(head.attempt_id):
            await self._send_mesh(session, head)

    async def remove_head(self, head: HeadStream) -> bool:
        """Whether the head was the current one of its attempt; its sessions are notified."""
        if self.heads.get(head.attempt_id) is not head:
            return False
        del self.heads[head.attempt_id]
        for session in self._sessions_of(head.attempt_id):
            await self._close_links(session)
            await session.send("head_away")
        return True

    async def add_session(self, session: SessionStream) -> None:
        """Connect a session, in place of its former stream."""
        former = self.sessions.get(session.session_id)
        self.sessions[session.session_id] = session
        if former is not None:
            await self._close_links(former)
            await former.close(1001, "replaced")
        head = self.heads.get(session.attempt_id)
        if head is None:
            await session.send("head_away")
        else:
            await self._send_mesh(session, head)

    async def remove_session(self, session: SessionStream) -> bool:
        """Whether the stream was the current one of its session; its links are closed."""
        await self._close_links(session)
        self._signing = {key: each for key, each in self._signing.items() if each[0] is not session}
        if self.sessions.get(session.session_id) is not session:
            return False
        del self.sessions[session.session_id]
        return True

    async def end_session(self, session_id: int, attempt_id: int, detail: str) -> None:
        """Have both ends close a session that has ended; `detail` says why."""
        head = self.heads.get(attempt_id)
        if head is not None:
            await head.send("close", session=session_id)
        stream = self.sessions.get(session_id)
        if stream is not None:
            await stream.send("close", detail=detail)
            await stream.close(1000, "ended")

    def take(self, token: str) -> tuple[Link, Side] | None:
        """Return the link and the side of a token, which is valid once; None if there is none."""
        self._tokens = {key: each for key, each in self._tokens.items() if not each[0].is_late}
        link, side = self._tokens.pop(token, (None, None))
        return None if link is None or side is None or link.is_over else (link, side)

    async def from_session(self, session: SessionStream, message: Message) -> None:
        """Handle a message of a session."""
        match message["op"]:
            case "link":
                await self._link(session, message)
            case "sign":
                await self._sign(session, message)

    async def from_head(self, head: HeadStream, message: Message) -> None:
        """Handle a message of a head, which reaches sessions of its own attempt only."""
        op = message["op"]
        fields = {name: value for name, value in message.items() if name not in {"op", "id"}}
        if op in {"signed", "refused"}:
            number = number_in(message, "id") or 0
            session, request = self._signing.get(number, (None, None))
            if session is not None and session.attempt_id == head.attempt_id:
                del self._signing[number]
                await session.send(op, id=request, **fields)
        elif op in _TO_ALL:
            for each in self._sessions_of(head.attempt_id):
                await each.send(op, **fields)
        elif op == "dial_failed":
            await self._give_up(head, message)

    async def _link(self, session: SessionStream, message: Message) -> None:
        number, generation = number_in(message, "link"), number_in(message, "generation")
        if number is None or generation is None:
            return
        known = {"link": number, "generation": generation}
        if (former := session.links.pop(number, None)) is not None:
            former.cut()
        head = self.heads.get(session.attempt_id)
        if head is None or session.is_full:
            why = "The head node is not connected." if head is None else "Too many links."
            await session.send("refused", **known, detail=why)
            return
        link = Link(session.session_id, number, generation, session.meter, self._instance)
        session.links[number] = link
        for side, token in link.tokens.items():
            self._tokens[token] = (link, side)
        more = {name: message[name] for name in ("rank", "kind") if name in message}
        await head.send(
            "dial",
            session=session.session_id,
            **known,
            **{"rank": 0, "kind": "worker", **more},
            token=link.tokens[Side.HEAD],
        )
        await session.send("dial", **known, token=link.tokens[Side.PROGRAM])

    async def _give_up(self, head: HeadStream, message: Message) -> None:
        """Close a link whose worker the head does not reach: the program dials anew."""
        session = self.sessions.get(number_in(message, "session") or 0)
        if session is None or session.attempt_id != head.attempt_id:
            return
        link = session.links.get(number_in(message, "link") or 0)
        if link is not None and link.generation == number_in(message, "generation"):
            await link.close(1011, str(message.get("detail", "")))

    async def _sign(self, session: SessionStream, message: Message) -> None:
        head, csr = self.heads.get(session.attempt_id), csr_in(message)
        if head is None or csr is None:
            why = "The head node is not connected." if head is None else "No valid request."
            await session.send("refused", id=message.get("id"), detail=why)
            return
        # Sessions have their own numbers: the head's answers name the exchange's number.
        number = next(self._ids)
        self._signing[number] = (session, message.get("id"))
        await head.send("sign", id=number, session=session.session_id, csr=csr)

    async def _send_mesh(self, session: SessionStream, head: HeadStream) -> None:
        fields = {name: value for name, value in head.hello.items() if name != "op"}
        await session.send("mesh", **fields)

    async def _close_links(self, session: SessionStream) -> None:
        links, session.links = list(session.links.values()), {}
        await asyncio.gather(*(link.close() for link in links))

    def _sessions_of(self, attempt_id: int) -> list[SessionStream]:
        return [each for each in self.sessions.values() if each.attempt_id == attempt_id]
