"""A peer's connection to rank 0: sends frames and the node's state, receives the goal.

It has its own thread, and reconnects while rank 0 may still be alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from typing import TYPE_CHECKING

from monarch_client.runner.base import tls
from monarch_client.runner.base.event_thread import EventThread
from monarch_client.runner.base.retry import Retry
from monarch_client.runner.peers import wire
from monarch_client.runner.vocabulary.frames import number_of, stored_prefix
from monarch_client.runner.vocabulary.limits import MAX_FRAME_BYTES
from monarch_client.runner.vocabulary.stack_requests import parse_stack_requests

if TYPE_CHECKING:
    from typing import Any, Callable

    from monarch_client.runner.journal.journal import Journal
    from monarch_client.runner.place import Place
    from monarch_client.runner.vocabulary.node_state import NodeState
    from monarch_client.runner.vocabulary.stack_requests import StackRequest

_BATCH_BYTES = 256 * 1024
_FIRST_PAUSE_S = 0.05
_LAST_PAUSE_S = 2.0
_FULL_PAUSE_S = 0.5
# Rank 0 declares a peer lost after half of this time.
_SILENCES = 2
_TROUBLE: tuple[type[Exception], ...] = (wire.WireError, OSError, asyncio.TimeoutError, ValueError)


class Link:
    """A connection that posts its callbacks to the main loop; set them before `start`."""

    def __init__(self, place: Place, journal: Journal) -> None:
        self.on_goal: Callable[[str, float | None], None] = lambda _goal, _grace_s: None
        # The stack dumps requested of this rank, repeated until they have arrived.
        self.on_stacks: Callable[[list[StackRequest]], None] = lambda _requests: None
        # Rank 0 wants this rank to serve its streams; repeated.
        self.on_streams: Callable[[], None] = lambda: None
        self.on_delivered: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self._place = place
        self._journal = journal
        self._thread = EventThread("link", self._keep_connected)
        self._is_woken = False
        self._state: dict[str, Any] = {}
        self._number = 0
        self._have = 0
        self._has_met = False
        self._is_delivered = False
        self._is_stuck = False
        self._heard_at = time.monotonic()
        self._silence_s = place.config.timeouts.peer_silence_s

    def start(self) -> None:
        """Start to connect."""
        self._journal.on_append = self._wake
        self._thread.start()

    def close(self) -> None:
        """Close the connection for good."""
        self._thread.close()

    def update(self, state: NodeState) -> None:
        """Send this state to rank 0, after all frames recorded until now."""
        self._state = state.to_dict()
        self._wake()

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._thread.call(self._start_work)

    def _start_work(self) -> None:
        self._work.set()

    async def _keep_connected(self) -> None:
        self._work = asyncio.Event()
        self._answered = asyncio.Event()
        # Short enough that rank 0 does not declare this rank lost.
        retry = Retry(_FIRST_PAUSE_S, min(_LAST_PAUSE_S, self._silence_s / 5))
        while True:
            started_at = time.monotonic()
            with contextlib.suppress(*_TROUBLE):
                await self._talk()
            if self._heard_at > started_at:
                retry.succeeded()
            if self._is_over:
                return
            await asyncio.sleep(retry.next_pause_s())

    @property
    def _is_over(self) -> bool:
        """Whether to connect no more; the main loop then gets the reason."""
        timeouts = self._place.config.timeouts
        limit = _SILENCES * self._silence_s if self._has_met else timeouts.setup_s
        if self._is_delivered:
            self._place.loop.post(self.on_delivered)
        elif time.monotonic() - self._heard_at > limit:
            self._place.loop.post(self.on_lost)
        else:
            return False
        return True

    async def _talk(self) -> None:
        config = self._place.config
        certificates = self._place.folder.certificates
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(
                config.address_of(0),
                config.hub_port,
                ssl=tls.client_context(certificates) if config.tls else None,
                limit=MAX_FRAME_BYTES,
            ),
            self._silence_s,
        )
        tasks = {
            asyncio.ensure_future(self._listen(reader)),
            asyncio.ensure_future(self._speak(writer)),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # All is sent, or the connection is broken.
            writer.transport.abort()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while True:
            message = await asyncio.wait_for(wire.receive(reader), self._silence_s)
            self._heard_at = time.monotonic()
            self._has_met = True
            goal, grace_s = str(message.fields["goal"]), message.fields.get("grace_s")
            self._place.loop.post(functools.partial(self.on_goal, goal, grace_s))
            requests = parse_stack_requests(message.fields.get("stacks"))
            if requests:
                self._place.loop.post(functools.partial(self.on_stacks, requests))
            if message.fields.get("streams"):
                self._place.loop.post(self.on_streams)
            if message.fields.get("number") == self._number:
                self._have = int(message.fields["have"])
                self._answered.set()

    async def _speak(self, writer: asyncio.StreamWriter) -> None:
        config, rank = self._place.config, self._place.rank
        hello = {"rank": rank, "token": config.token, "attempt_id": config.attempt_id}
        await self._exchange(writer, {"hello": hello}, [])
        while not self._is_delivered:
            self._is_woken = False
            self._work.clear()
            if not await self._report(writer):
                await self._rest_while_full()
                continue
            try:
                await asyncio.wait_for(self._work.wait(), self._silence_s / 5)
            except asyncio.TimeoutError:
                continue  # a repeated report is a sign of life

    async def _rest_while_full(self) -> None:
        """Pause while a disk, here or on rank 0, has no space for the next frames."""
        if self._is_stuck:
            await asyncio.sleep(min(_FULL_PAUSE_S, self._silence_s / 5))

    async def _report(self, writer: asyncio.StreamWriter) -> bool:
        """Send the next frames, then the state; return whether no earlier frame is left."""
        state = self._state
        written = self._journal.last_number(self._place.rank)
        lines = self._journal.peek(_BATCH_BYTES)
        is_complete = number_of(lines[-1])[1] >= written if lines else self._journal.is_read
        samples = [line.decode("ascii") for line in self._place.samples.take()]
        fields = {"state": state if is_complete else None, "samples": samples}
        await self._exchange(writer, fields, lines)
        stored = stored_prefix(lines, {self._place.rank: self._have})
        self._journal.acknowledge(stored)
        self._is_stuck = not stored
        is_complete = is_complete and len(stored) == len(lines)
        self._is_delivered = is_complete and bool(state.get("ended"))
        return is_complete

    async def _exchange(
        self, writer: asyncio.StreamWriter, fields: dict[str, Any], lines: list[bytes]
    ) -> None:
        self._number += 1
        self._answered.clear()
        await wire.send(writer, {**fields, "number": self._number}, lines)
        await asyncio.wait_for(self._answered.wait(), self._silence_s)
