"""Switches of all ranks to one tree: the head's decision, and what every rank does about it.

The head decides when all ranks have prepared, and stores that. Until then a newer tree takes the
place of an older one. A rank that has lost its parent
before it heard the decision, or whose process was started again, requests it from the head until
no round is running. After the decision the head dials the late ranks until they have the tree.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from monarch_client.runner.base.retry import Retry
from monarch_client.runner.base.small_files import write_note
from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code.manifest import is_digest
from monarch_client.runner.code_sync import messages
from monarch_client.runner.code_sync.receiving import ReplacedError, Switched
from monarch_client.runner.code_sync.rounds import BUSY_S, STUCK_S, Round

if TYPE_CHECKING:
    from typing import Any, Callable, Coroutine, Sequence

    from monarch_client.runner.code_sync.rounds import Member
    from monarch_client.runner.code_sync.streams import Stream

# A file that exists once a process of this rank has taken part in switches.
MARK = "served"
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0
# For ranks that lost their parent in the middle of a switch.
_LATE_S = 10.0
# Between looks for lost children while the decision is awaited.
_LOOK_S = 0.2
# While the head has not decided.
_ASK_AGAIN_S = 1.0
_MOST_DIALS = 32
# The ranks that switch first leave the processors to the others.
_TIDY_AFTER_S = 0.3


class Switches:
    """The switches in which one rank takes part; on rank 0, the head, `switch` begins them."""

    def __init__(self, member: Member) -> None:
        self._member = member
        folder = member.generations.folder
        self._note = folder / "decided"
        self._mark = folder / MARK
        self._turn = asyncio.Lock()
        # On the head: whether a round may still lead to a decision.
        self._is_running = False
        # On the head: the newest switch until it is decided, and its round.
        self._undecided: asyncio.Task[Switched] | None = None
        self._preparing: Round | None = None
        self._round: asyncio.Task[None] | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        # Set to tidy without the pause.
        self._tidy_now = asyncio.Event()
        self._reminding: asyncio.Task[None] | None = None
        # On the head: the ranks that have the decided tree, and reasons of others.
        self._have: set[int] = set()
        self._reasons: dict[int, str] = {}
        self._news = asyncio.Event()
        # On the head: called with each tree to which it has decided to switch.
        self.on_decided: Callable[[str], None] = lambda _tree: None

    @property
    def decided(self) -> str | None:
        """Return the tree to which the head has decided to switch, if there is one."""
        try:
            text = self._note.read_text()
        except OSError:
            return None
        return text if is_digest(text) else None

    async def resume(self) -> None:
        """Take up what an earlier process of this rank has left, if there was one."""
        if not self._mark.exists():
            write_note(self._mark, "")
        elif self._member.rank:
            self._catch_up()
        elif self.decided is not None:
            with contextlib.suppress(CodeError):
                await self._adopt(self.decided)
            self._remind()

    async def switch(self, tree: str, on_ready: Callable[[int, int], None]) -> Switched:
        """Switch all ranks to a tree whose blocks the head has: all or none.

        `on_ready` gets the number of ranks that have it, and of all. CodeError: not even the head
        can prepare. ReplacedError: a newer tree has arrived before the decision.
        """
        self.make_way()
        mine = self._undecided = asyncio.ensure_future(self._switch_in_turn(tree, on_ready))
        try:
            await asyncio.wait({mine})
        finally:
            mine.cancel()
        if mine.cancelled():
            raise ReplacedError
        return mine.result()

    def make_way(self) -> None:
        """Give up a switch that is not decided yet: a newer tree arrives."""
        self._hurry()
        if self._undecided is not None:
            if self._preparing is not None:
                self._preparing.give_up()
            self._undecided.cancel()
            self._undecided = None

    async def _switch_in_turn(self, tree: str, on_ready: Callable[[int, int], None]) -> Switched:
        async with self._turn:
            return await self._switch(tree, on_ready)

    async def _switch(self, tree: str, on_ready: Callable[[int, int], None]) -> Switched:
        member, ready = self._member, 0

        def count(more: int) -> None:
            nonlocal ready
            ready += more
            on_ready(ready, member.ranks)

        count(0)
        self._hurry()
        self._is_running = True
        if self._reminding is not None:
            self._reminding.cancel()
        try:
            switched = await self._run_round(tree, count)
        finally:
            self._is_running = False
            # A newer tree uses what one that was given up has made.
            if self._preparing is None:
                self._tidy()
            self._remind()
        if switched.failures:
            return switched
        await self._wait_for_late_ranks()
        late = {
            rank: self._reasons.get(rank, "it does not answer")
            for rank in range(member.ranks)
            if rank not in self._have
        }
        return Switched(len(self._have), {}, late)

    async def _run_round(self, tree: str, count: Callable[[int], None]) -> Switched:
        """Have all ranks prepare, decide, and have them switch."""
        member = self._member
        try:
            looking = member.fetcher.call(self._changed_folders, tree)
            hints = await asyncio.wait_for(looking, STUCK_S)
        except asyncio.TimeoutError as error:
            raise CodeError("its disk does not answer") from error
        switch = self._preparing = Round(member, tree, hints, count)
        try:
            failures = await switch.prepare()
            self._undecided = self._preparing = None
            if not failures and not write_note(self._note, tree):
                failures = {0: "its disk is full"}
            if failures:
                switch.abort()
                return Switched(0, failures, {})
            self.on_decided(tree)
            self._have, self._reasons, self._is_running = set(), {}, False
            self._have.update(await switch.commit())
        finally:
            switch.close()
        return Switched(len(self._have), {}, {})

    def _remind(self) -> None:
        """Have the ranks that do not have the decided tree request it, in the background."""
        if self.decided is not None and len(self._have) < self._member.ranks:
            self._reminding = asyncio.ensure_future(self._remind_late_ranks())

    async def _remind_late_ranks(self) -> None:
        """Send each late rank to the head: a lost stream may have carried the decision."""
        retry = Retry(_FIRST_PAUSE_S, _LAST_PAUSE_S)
        while late := set(range(self._member.ranks)) - self._have:
            for start in range(0, self._member.ranks, _MOST_DIALS):
                some = late.intersection(range(start, start + _MOST_DIALS))
                await asyncio.gather(*map(self._remind_rank, some))
            await asyncio.sleep(retry.next_pause_s())

    async def _remind_rank(self, rank: int) -> None:
        decided = self.decided
        if decided is not None and rank == self._member.rank:
            self._reasons[rank] = await self._problem_with(decided)
            if not self._reasons[rank]:
                self._have.add(rank)
            return
        with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
            stream = await self._member.dial(rank, "switch", decided=decided)
            stream.writer.close()

    def _changed_folders(self, tree: str) -> list[str]:
        """Return the folders of a tree that the current one does not have, if they are few."""
        generations = self._member.generations
        current = generations.current
        known = set(generations.trees.folders(current)) if current else set()
        changed = list(generations.trees.folders(tree, known))
        return changed if len(changed) <= messages.MOST_FOLDERS else []

    async def _wait_for_late_ranks(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _LATE_S
        while len(self._have) < self._member.ranks:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), deadline - loop.time())
            except asyncio.TimeoutError:
                return

    async def serve(self, stream: Stream) -> None:
        """Serve a stream of the service `switch`: of the parent, or of a rank that was lost."""
        if "have" in stream.request:
            self._note_rank(stream.request)
            await stream.accept(decided=self.decided, running=self._is_running)
            return
        if "decided" in stream.request:
            if self._member.rank:
                self._catch_up()
            await stream.accept()
            return
        await stream.accept()
        message = await messages.receive(stream.reader)
        tree = (message or {}).get("prepare")
        if message is None or not is_digest(tree):
            return
        hints = [each for each in messages.names_in(message, "hints") if is_digest(each)]
        await self._replace(self._take_part(stream, str(tree), hints))

    def _note_rank(self, request: dict[str, Any]) -> None:
        """Note on the head which tree a rank has."""
        rank = request.get("from")
        if not isinstance(rank, int):
            return
        if request["have"] == self.decided:
            self._have.add(rank)
        else:
            self._reasons[rank] = str(request.get("problem") or "it was lost during the switch")
        self._news.set()

    async def _replace(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of a newer parent stream in place of that of an older one."""
        former = self._round
        mine = self._round = asyncio.get_running_loop().create_task(work)
        if former is not None:
            former.cancel()
        try:
            await asyncio.wait({mine})
        finally:
            mine.cancel()
        if not mine.cancelled():
            mine.result()

    async def _take_part(self, stream: Stream, tree: str, hints: Sequence[str]) -> None:
        """Prepare with the ranks below, and switch if the parent then sends the decision."""
        writer = stream.writer
        self._hurry()
        switch = Round(
            self._member, tree, hints, lambda ready: writer.write(messages.pack(ready=ready))
        )
        failures: dict[int, str] | None = None
        deciding = asyncio.ensure_future(messages.receive(stream.reader))
        preparing = asyncio.ensure_future(switch.prepare())
        try:
            failures = await self._prepared(stream, preparing, deciding)
            if failures is None:
                return
            writer.write(messages.pack(prepared=True, failures=failures))
            decision = await self._decision(switch, deciding)
            if "commit" not in decision:
                if "abort" in decision:
                    switch.abort()
                else:
                    self._catch_up()
                return
            switched = await switch.commit()
            writer.write(messages.pack(switched=switched))
            await writer.drain()
            if self._member.rank not in switched:
                self._catch_up()
        finally:
            preparing.cancel()
            deciding.cancel()
            switch.close()
            if failures is not None:
                self._tidy()

    async def settle(self) -> None:
        """Wait until what a switch leaves to the background is done."""
        self._tidy_now.set()
        if self._tidying is not None:
            await asyncio.wait({self._tidying})

    def _hurry(self) -> None:
        """End the work that the former switch has left to the background, or do it shortly."""
        self._member.generations.hurry.set()
        self._tidy_now.set()

    def _tidy(self) -> None:
        """Remove what is not used any more and get ready for the next switch, in the background."""
        self._member.generations.hurry.clear()
        self._tidy_now.clear()
        self._tidying = asyncio.ensure_future(self._try_to_tidy())

    async def _try_to_tidy(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._tidy_now.wait(), _TIDY_AFTER_S)
        # It is tried again after the next switch.
        with contextlib.suppress(CodeError):
            await self._member.fetcher.call(self._member.generations.tidy)

    @staticmethod
    async def _prepared(
        stream: Stream,
        preparing: asyncio.Future[dict[int, str]],
        deciding: asyncio.Future[dict[str, Any] | None],
    ) -> dict[int, str] | None:
        """Return the failures once all below have prepared; None: the parent is lost."""
        while not preparing.done():
            stream.writer.write(messages.pack(busy=True))
            either: set[asyncio.Future[Any]] = {preparing, deciding}
            await asyncio.wait(either, timeout=BUSY_S, return_when=asyncio.FIRST_COMPLETED)
            if deciding.done():
                return None
        return preparing.result()

    @staticmethod
    async def _decision(
        switch: Round, deciding: asyncio.Future[dict[str, Any] | None]
    ) -> dict[str, Any]:
        """Return the parent's decision; {} if the parent is lost: then the head has it.

        {} also if a child is lost, which the parent notices: it repeats its request.
        """
        while not deciding.done() and not switch.lost:
            await asyncio.wait({deciding}, timeout=_LOOK_S)
        try:
            return (deciding.result() if deciding.done() else None) or {}
        except (OSError, EOFError):
            return {}

    def _catch_up(self) -> None:
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = asyncio.ensure_future(self._request_decision())

    async def _request_decision(self) -> None:
        """Request the decided tree from the head until this rank has it."""
        retry, problem = Retry(_FIRST_PAUSE_S, _LAST_PAUSE_S), ""
        member = self._member
        while True:
            have = member.generations.current
            with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
                report = {"from": member.rank, "have": have, "problem": problem}
                stream = await member.dial(0, "switch", **report)
                stream.writer.close()
                decided = stream.answer.get("decided")
                if decided in {None, have}:
                    if not stream.answer.get("running"):
                        return
                    await asyncio.sleep(_ASK_AGAIN_S)
                    continue
                problem = await self._problem_with(str(decided))
                if not problem:
                    continue
            await asyncio.sleep(retry.next_pause_s())

    async def _problem_with(self, tree: str) -> str:
        """Switch to a tree that was decided; return why that is not possible."""
        if not is_digest(tree):
            return "the head sent no tree"
        try:
            await self._adopt(tree)
        except CodeError as error:
            return str(error)
        return ""

    async def _adopt(self, tree: str) -> None:
        fetcher = self._member.fetcher
        await fetcher.prepare(tree, [])
        await fetcher.call(self._member.generations.switch, tree)
