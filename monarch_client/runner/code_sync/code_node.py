"""The part of a node in the synchronization of code: its services, and its rank's switches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code_sync.block_service import Arrivals, BlockService
from monarch_client.runner.code_sync.fetching import Fetcher
from monarch_client.runner.code_sync.rounds import Member
from monarch_client.runner.code_sync.switching import Switches

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from monarch_client.runner.base.config import NodeFolder
    from monarch_client.runner.code_sync.streams import Dial


class CodeNode:
    """One rank of so many. What blocks runs on `thread`, an executor that has one."""

    def __init__(
        self,
        rank: int,
        ranks: int,
        folder: NodeFolder,
        dial: Dial,
        thread: Executor | None = None,
    ) -> None:
        self.thread = thread or ThreadPoolExecutor(1, "code")
        self.generations = Generations(folder.code, folder.workdir)
        arrivals = Arrivals()
        self.blocks = BlockService(self.generations.store, arrivals)
        fetcher = Fetcher(rank, self.generations, self.thread, dial, arrivals)
        member = Member(rank, ranks, self.generations, fetcher, dial)
        self.switches = Switches(member, folder.code)
