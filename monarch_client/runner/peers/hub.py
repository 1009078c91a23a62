"""The server of rank 0 for the other ranks: takes their frames and states, sends the goal.

It has its own thread, which posts the received states to the main loop.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import hmac
import socket
import time
from typing import TYPE_CHECKING

from monarch_client.runner.base import tls
from monarch_client.runner.base.event_thread import EventThread
from monarch_client.runner.peers import wire
from monarch_client.runner.vocabulary.frames import kind_of, number_of
from monarch_client.runner.vocabulary.limits import MAX_FRAME_BYTES
from monarch_client.runner.vocabulary.messages import MALFORMED
from monarch_client.runner.vocabulary.node_state import NodeState

if TYPE_CHECKING:
    from typing import Any

    from monarch_client.runner.attempt.attempt import Attempt
    from monarch_client.runner.journal.journal import Journal
    from monarch_client.runner.place import Place
    from monarch_client.runner.vocabulary.stack_requests import StackRequest

_HELLO_TIMEOUT_S = 10.0


class Hub:
    """The server, from `open` to the end of the process."""

    def __init__(self, place: Place, journal: Journal, attempt: Attempt) -> None:
        self._place = place
        self._journal = journal
        self._attempt = attempt
        self._goal = attempt.goal
        self._stack_requests: list[StackRequest] = []
        self._wants_streams = False
        self._peers: dict[int, asyncio.StreamWriter] = {}
        self._heard_at: dict[int, float] = {}
        self._silence_s = place.config.timeouts.peer_silence_s

    def open(self) -> None:
        """Listen on the hub's port. OSError if it is not available."""
        listener = self._listen()
        self._thread = EventThread("hub", functools.partial(self._serve, listener))
        self._thread.start()

    def send_goal(self, goal: str) -> None:
        """Send a new goal to all peers. Safe from any thread."""
        self._goal = goal
        self._thread.call(self._broadcast)

    def request_stacks(self, requests: list[StackRequest]) -> None:
        """Send each rank its stack requests, in place of earlier ones. Safe from any thread."""
        self._stack_requests = requests
        self._thread.call(self._broadcast)

    def is_cut_off(self) -> bool:
        """Whether a rank has lost its connection, as when its runner was killed. Thread-safe."""
        return any(rank not in self._peers for rank in list(self._heard_at))

    def request_streams(self) -> None:
        """Have each rank serve its streams. Safe from any thread."""
        self._wants_streams = True
        self._thread.call(self._broadcast)

    def close(self) -> None:
        """Close all connections and the port."""
        self._thread.close()

    def _listen(self) -> socket.socket:
        config = self._place.config
        # Named in full: asyncio switches delays off only where it knows the protocol.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((config.address_of(0), config.hub_port))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            # The peers use an address that is translated on its way here.
            listener.bind(("", config.hub_port))
        listener.listen(1024)
        return listener

    async def _serve(self, listener: socket.socket) -> None:
        has_tls = self._place.config.tls is not None
        context = tls.server_context(self._place.folder.certificates) if has_tls else None
        server = await asyncio.start_server(
            self._talk, sock=listener, ssl=context, limit=MAX_FRAME_BYTES
        )
        try:
            while True:
                await asyncio.sleep(self._silence_s / 5)
                self._look_for_silence()
        finally:
            server.close()

    def _look_for_silence(self) -> None:
        limit = time.monotonic() - self._silence_s
        for rank, heard_at in list(self._heard_at.items()):
            if heard_at < limit:
                del self._heard_at[rank]
                self._place.loop.post(functools.partial(self._attempt.peer_is_silent, rank))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rank = None
        try:
            rank = await self._welcome(reader, writer)
            while True:
                message = await asyncio.wait_for(wire.receive(reader), self._silence_s)
                self._heard_at[rank] = time.monotonic()
                await self._answer(rank, message, writer)
        except (wire.WireError, OSError, asyncio.TimeoutError, *MALFORMED):
            # A peer is lost by silence, not by a broken connection, which it may restore.
            pass
        finally:
            if rank is not None and self._peers.get(rank) is writer:
                del self._peers[rank]
            writer.transport.abort()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        message = await asyncio.wait_for(wire.receive(reader), _HELLO_TIMEOUT_S)
        hello, config = message.fields.get("hello", {}), self._place.config
        rank = int(hello.get("rank", 0))
        is_ours = hmac.compare_digest(str(hello.get("token")).encode(), config.token.encode())
        if not is_ours or hello.get("attempt_id") != config.attempt_id:
            raise wire.WireError("a stranger")
        if rank not in config.ranks[1:]:
            raise wire.WireError("no such rank")
        self._peers[rank] = writer
        self._heard_at[rank] = time.monotonic()
        await self._send_answer(rank, int(message.fields.get("number", 0)), writer)
        return rank

    async def _answer(self, rank: int, message: wire.Message, writer: asyncio.StreamWriter) -> None:
        self._store(rank, message.lines)
        samples = message.fields.get("samples")
        for sample in samples if isinstance(samples, list) else ():
            line = str(sample).partition("\n")[0].encode("ascii", "replace") + b"\n"
            # A frame with a number is no sample: it would become a part of the log.
            if number_of(line) == (rank, 0):
                self._place.samples.put(rank, line, kind_of(line))
        if message.fields.get("state"):
            state = NodeState.from_dict(message.fields["state"])
            self._place.loop.post(lambda: self._attempt.node_changed(rank, state))
        await self._send_answer(rank, int(message.fields.get("number", 0)), writer)

    async def _send_answer(self, rank: int, number: int, writer: asyncio.StreamWriter) -> None:
        have = self._journal.highest.get(rank, 0)
        await wire.send(writer, {"number": number, "have": have, **self._orders_for(rank)})

    def _orders_for(self, rank: int) -> dict[str, Any]:
        requests = [request._asdict() for request in self._stack_requests if request.rank == rank]
        return {
            "goal": self._goal,
            "grace_s": self._attempt.grace_s,
            "stacks": requests,
            "streams": self._wants_streams,
        }

    def _store(self, rank: int, lines: list[bytes]) -> None:
        """Add new frames to the journal; after a reconnection some arrive again."""
        have = self._journal.highest.get(rank, 0)
        new = [line for line in lines if number_of(line) > (rank, have)]
        if new:
            last = number_of(new[-1])
            if number_of(new[0]) != (rank, have + 1) or last != (rank, have + len(new)):
                raise wire.WireError("frames are missing")
            # If the disk is full, the peer keeps them: the answer contains the last stored number.
            self._journal.offer(rank, last[1], new)

    def _broadcast(self) -> None:
        # Written at once, not awaited: so short a message needs no flow control.
        for rank, writer in self._peers.items():
            wire.write(writer, self._orders_for(rank))
