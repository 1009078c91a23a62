"""The head node has the portal keep what all ranks have decided to switch to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code_sync import node_code, receiving
from monarch_client.runner.code_sync.keeping import PortalAddress
from monarch_client.runner.code_sync.node_code import CodeSettings, NodeCode
from monarch_client.runner.code_sync.receiving import Switched
from monarch_client.runner.code_sync.switching import Switches
from tests.code_trees import plant, write_out


class Kept:
    """A stand-in for the sender of trees to the portal, which notes them."""

    trees: list[str]
    problem = ""

    def __init__(self, *arguments: Any) -> None:
        self._on_result = arguments[-1]

    def keep(self, tree: str) -> None:
        """Note a tree."""
        self.trees.append(tree)

    def has_result(self, _tree: str) -> bool:
        """Whether `refuse` was called."""
        return bool(self.problem)

    def refuse(self) -> None:
        """Refuse the tree, as the thread of the sender does."""
        self.problem = "too large"
        threading.Thread(target=self._on_result).start()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(Kept, "trees", [], raising=False)
    monkeypatch.setattr(node_code, "Keeper", Kept)
    return Kept.trees


def trees_in(folder: Path) -> tuple[str, str]:
    """Make a node with one generation; return its tree, and another one that it stores."""
    write_out({"a.py": b"1"}, folder / "workdir")
    generations = Generations(folder / "code", folder / "workdir")
    first = generations.record()
    generations.adopt(first)
    return first, plant(generations.store, {"a.py": b"2"})


def run(folder: Path, main: Callable[[NodeCode], Awaitable[Any]]) -> None:
    async def body() -> None:
        portal = PortalAddress("http://127.0.0.1:1", None, "t", 1)
        settings = CodeSettings(0, 1, str(folder / "code"), str(folder / "workdir"), portal)
        await main(NodeCode(settings, None))

    asyncio.run(asyncio.wait_for(body(), 20))


def test_a_head_that_starts_again_keeps_what_was_decided_and_nothing_else(tmp_path, kept):
    first, decided = trees_in(tmp_path)
    (tmp_path / "code" / "served").touch()
    run(tmp_path, lambda node: node.resume())
    assert kept == []
    (tmp_path / "code" / "decided").write_text(decided)
    run(tmp_path, lambda node: node.resume())
    assert set(kept) == {decided} != {first}


def test_code_is_kept_once_it_is_decided_while_late_ranks_are_waited_for(
    tmp_path, kept, monkeypatch
):
    _, tree = trees_in(tmp_path)
    monkeypatch.setattr(node_code, "_KEEP_AFTER_S", 0)

    async def switch(switches: Switches, tree: str, _on_ready: object) -> Switched:
        switches.on_decided(tree)
        while tree not in kept:
            await asyncio.sleep(0.01)
        return Switched(1, {}, {})

    monkeypatch.setattr(Switches, "switch", switch)
    run(tmp_path, lambda node: node._switch(tree, lambda _ready, _ranks: None))
    assert set(kept) == {tree}


def test_a_laptop_can_wait_until_the_portal_has_refused_large_code(tmp_path, kept, monkeypatch):
    _, tree = trees_in(tmp_path)
    monkeypatch.setattr(node_code, "_LARGE_BYTES", 0)

    async def main(node: NodeCode) -> None:
        node._keep(await node._open(), tree)
        assert await node._kept_of(tree, False) == receiving.Kept("", is_pending=True)
        waiting = asyncio.ensure_future(node._kept_of(tree, True))
        await asyncio.sleep(0)
        assert not waiting.done()
        node._keeper.refuse()
        assert await waiting == receiving.Kept("too large")

    run(tmp_path, main)
