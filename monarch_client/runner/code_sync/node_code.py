"""The code of this node: its generations, and the services by which laptops change them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code_sync.keeping import Keeper, PortalAddress, limit_problem
from monarch_client.runner.code_sync.rank_code import RankCode
from monarch_client.runner.code_sync.receiving import CodeService, Kept
from monarch_client.runner.code_sync.switching import MARK

if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable, Mapping

    from monarch_client.runner.code_sync.receiving import OnReady, Switched
    from monarch_client.runner.code_sync.streams import Dial, Stream

# A file that names the tree that the portal has.
_KEPT = "kept"
# Packing for the portal waits until the ranks have switched.
_KEEP_AFTER_S = 0.3
# Smaller code is with the portal in a moment, and seldom too large for it.
_LARGE_BYTES = 64 * 1024**2
_MOST_WAIT_S = 120.0
_FIXED = (
    "the job was started without portal.gateway, so its code cannot be replaced. Submit it again "
    "with portal: {gateway: true}"
)


class CodeSettings(NamedTuple):
    """The node's rank of so many, the folders of its code, and the portal that keeps it."""

    rank: int
    ranks: int
    folder: str
    workdir: str
    portal: PortalAddress


class NodeCode:
    """The code of this node, opened when the first stream needs it. `dial` reaches the others."""

    def __init__(self, settings: CodeSettings, dial: Dial) -> None:
        self._settings = settings
        self._dial = dial
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="code")
        self._opening = asyncio.Lock()
        self._opened: RankCode | None = None
        self._service: CodeService | None = None
        self._keeper: Keeper | None = None
        # Set when the portal has kept or refused a tree.
        self._news = asyncio.Event()

    @property
    def services(self) -> Mapping[str, Callable[[Any], Awaitable[None]]]:
        """The services of this node by name; laptops send code to rank 0."""
        services = {"blocks": self._serve_blocks, "switch": self._serve_switch}
        return {**services, "code": self._serve_code} if self._settings.rank == 0 else services

    async def resume(self) -> None:
        """Take up what an earlier process of this node has left, if it took part in switches."""
        if Path(self._settings.folder, MARK).exists():
            opened = await self._open()
            decided = opened.switches.decided
            if self._settings.rank == 0 and decided is not None:
                # The earlier process may not have kept it, even if this one cannot switch to it.
                self._keep(opened, decided)

    async def _serve_blocks(self, stream: Stream) -> None:
        await (await self._open()).blocks.serve(stream)

    async def _serve_switch(self, stream: Stream) -> None:
        await (await self._open()).switches.serve(stream)

    async def _serve_code(self, stream: Stream) -> None:
        opened = await self._open()
        if self._service is None:
            made = opened.generations
            self._service = CodeService(
                made.trees,
                made.store,
                self._thread,
                self._switch,
                self._kept_of,
                opened.switches.make_way,
            )
        await self._service.serve(stream)

    async def _open(self) -> RankCode:
        settings = self._settings
        folders = Path(settings.folder), Path(settings.workdir)
        async with self._opening:
            if self._opened is None:
                loop = asyncio.get_running_loop()
                made = await loop.run_in_executor(self._thread, Generations, *folders)
                opened = RankCode(settings.rank, settings.ranks, made, self._dial, self._thread)
                opened.switches.on_decided = functools.partial(self._note_decision, opened)
                await opened.switches.resume()
                self._opened = opened
        return self._opened

    async def _switch(self, tree: str, on_ready: OnReady) -> Switched:
        opened = await self._open()
        if opened.generations.current is None:
            raise CodeError(_FIXED)
        return await opened.switches.switch(tree, on_ready)

    def _note_decision(self, opened: RankCode, tree: str) -> None:
        """Have the portal keep a tree soon: not once the last rank has switched."""
        asyncio.get_running_loop().call_later(_KEEP_AFTER_S, self._keep, opened, tree)

    def _keep(self, opened: RankCode, tree: str) -> None:
        """Have the portal keep a tree, unless it has it."""
        if self._keeper is None:
            note = Path(self._settings.folder, _KEPT)
            loop = asyncio.get_running_loop()
            self._keeper = Keeper(
                self._settings.portal,
                opened.generations.store,
                note,
                functools.partial(loop.call_soon_threadsafe, self._news.set),
            )
        self._keeper.keep(tree)

    async def _kept_of(self, tree: str, waits: bool) -> Kept:  # noqa: FBT001 - of one service
        """Return whether the portal keeps a tree; with `waits`, once it has answered."""
        opened = await self._open()
        loop = asyncio.get_running_loop()
        trees = opened.generations.trees
        try:
            problem = await loop.run_in_executor(self._thread, limit_problem, trees, tree)
            size = trees.check(tree).size_bytes
        except CodeError as error:
            return Kept(str(error))
        if problem:
            return Kept(problem)
        if waits:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._result_for(tree), _MOST_WAIT_S)
        if self._keeper is None:
            return Kept("", size > _LARGE_BYTES)
        # That of the tree before, if it was not kept: this one may be as large.
        problem = self._keeper.problem
        return Kept(problem, not problem and size > _LARGE_BYTES)

    async def _result_for(self, tree: str) -> None:
        """Wait until the portal has kept or refused a tree, or gets a later one in its place."""
        while self._keeper is None or not self._keeper.has_result(tree):
            self._news.clear()
            await self._news.wait()
