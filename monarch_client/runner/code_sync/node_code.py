"""The code of this node: its generations, and the services by which laptops change them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code_sync.keeping import Keeper, PortalAddress
from monarch_client.runner.code_sync.receiving import CodeService, Switched

if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable, Mapping

    from monarch_client.runner.code_sync.receiving import OnReady, Stream

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
    """The generations of this node, made when the first stream needs them."""

    def __init__(self, settings: CodeSettings) -> None:
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="code")
        self._opening = asyncio.Lock()
        self._generations: Generations | None = None
        self._service: CodeService | None = None
        self._keeper: Keeper | None = None

    @property
    def services(self) -> Mapping[str, Callable[[Any], Awaitable[None]]]:
        """The services of this node by name; laptops send code to rank 0."""
        return {"code": self._serve_code} if self._settings.rank == 0 else {}

    async def _serve_code(self, stream: Stream) -> None:
        async with self._opening:
            if self._service is None:
                self._service = await self._open()
        await self._service.serve(stream)

    async def _open(self) -> CodeService:
        settings = self._settings
        folders = Path(settings.folder), Path(settings.workdir)
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._thread, Generations, *folders)
        self._generations = made
        self._keeper = Keeper(settings.portal, made.store)
        return CodeService(made.trees, made.store, self._thread, self._switch)

    async def _switch(self, tree: str, on_ready: OnReady) -> Switched:
        loop = asyncio.get_running_loop()
        made, keeper = self._generations, self._keeper
        if made is None or keeper is None:
            raise AssertionError  # `_open` makes them before the service
        if made.current is None:
            raise CodeError(_FIXED)
        if self._settings.ranks > 1:
            raise CodeError("jobs of several nodes cannot be synchronized yet")
        await loop.run_in_executor(self._thread, made.prepare, tree)
        on_ready(1, self._settings.ranks)
        await loop.run_in_executor(self._thread, made.switch, tree)
        keeper.keep(tree)
        await loop.run_in_executor(self._thread, made.collect)
        return Switched(self._settings.ranks, {}, {})
