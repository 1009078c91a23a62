"""The part of one rank in the synchronization of code: its blocks, and its switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monarch_client.runner.code_sync.block_service import Arrivals, BlockService
from monarch_client.runner.code_sync.fetching import Fetcher
from monarch_client.runner.code_sync.rounds import Member
from monarch_client.runner.code_sync.switching import Switches

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from monarch_client.runner.code.generations import Generations
    from monarch_client.runner.code_sync.streams import Dial


class RankCode:
    """The code of one rank of so many. What blocks runs on `thread`, an executor that has one."""

    def __init__(
        self, rank: int, ranks: int, generations: Generations, dial: Dial, thread: Executor
    ) -> None:
        self.generations = generations
        arrivals = Arrivals()
        self.blocks = BlockService(generations.store, arrivals)
        fetcher = Fetcher(rank, generations, thread, dial, arrivals)
        self.switches = Switches(Member(rank, ranks, generations, fetcher, dial))
