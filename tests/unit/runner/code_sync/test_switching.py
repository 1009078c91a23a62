"""All ranks of an attempt switch to new code, or none, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.small_files import write_note
from monarch_client.runner.code_sync import rounds, switching
from monarch_client.runner.code_sync.receiving import ReplacedError, Switched
from tests.code_cluster import CodeCluster
from tests.code_trees import Model, found_in, plant

pytestmark = pytest.mark.feature("S1.4")
OLD: Model = {"code.py": b"old", "pkg": {"gone.py": b""}}
NEW: Model = {"code.py": b"new", "pkg": {"deep": {"added.py": b"x" * 5000}}}
# Rank 1 has the ranks 9 to 16 below it.
RANKS = 18
PARENT, CHILD = 1, 9


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_RETRY_S", 1.0)
    monkeypatch.setattr(rounds, "_PAUSE_S", 0.01)
    monkeypatch.setattr(switching, "_LATE_S", 0.3)


def run(folder: Path, main: Callable[[CodeCluster], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        cluster = CodeCluster(folder, RANKS, OLD)
        try:
            await asyncio.wait_for(main(cluster), 60)
        finally:
            await cluster.close()

    asyncio.run(whole())


def workdirs(cluster: CodeCluster) -> list[Model]:
    return [found_in(cluster.folder_of(rank).workdir) for rank in range(RANKS)]


async def eventually(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.feature("S1.4")
def test_all_ranks_switch_and_each_block_leaves_a_rank_at_most_eight_times(
    tmp_path: Path,
) -> None:
    async def main(cluster: CodeCluster) -> None:
        store = cluster.nodes[0].generations.store
        before = store.size_bytes
        tree = plant(store, NEW)
        size = store.size_bytes - before
        ready: list[tuple[int, int]] = []
        head = cluster.nodes[0].switches
        switched = await head.switch(tree, lambda *counts: ready.append(counts))
        assert switched == (RANKS, {}, {})
        assert workdirs(cluster) == [NEW] * RANKS
        assert ready[-1] == (RANKS, RANKS)
        sent = [cluster.nodes[rank].blocks.sent_bytes for rank in range(RANKS)]
        assert sent == [8 * size, 8 * size, size, *[0] * (RANKS - 3)]
        # Back again: every node has all blocks already.
        assert (await cluster.switch(plant(store, OLD))).ranks == RANKS
        assert workdirs(cluster) == [OLD] * RANKS
        assert [cluster.nodes[rank].blocks.sent_bytes for rank in range(RANKS)] == sent

    run(tmp_path, main)


def test_a_full_disk_on_one_node_keeps_all_on_the_old_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)

        def add(_content: bytes, _digest: str) -> str:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(cluster.nodes[CHILD].generations.store, "add", add)
        switched = await cluster.switch(tree)
        assert switched == (0, {CHILD: "it cannot be stored: No space left on device"}, {})
        assert workdirs(cluster) == [OLD] * RANKS
        monkeypatch.undo()
        assert (await cluster.switch(tree)).ranks == RANKS
        assert workdirs(cluster) == [NEW] * RANKS

    run(tmp_path, main)


def test_a_node_that_is_lost_keeps_all_on_the_old_code(tmp_path: Path) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)
        cluster.kill(PARENT)
        switched = await cluster.switch(tree)
        assert switched == (0, {PARENT: "it does not answer: the connection was refused"}, {})
        assert workdirs(cluster) == [OLD] * RANKS

    run(tmp_path, main)


def test_a_parent_that_is_killed_while_it_sends_code_is_replaced(
    tmp_path: Path,
) -> None:
    async def main(cluster: CodeCluster) -> None:
        restarts: list[asyncio.Task[None]] = []

        def kill(rank: int, to: int, service: str) -> None:
            if (rank, to, service) == (CHILD, PARENT, "blocks") and not restarts:
                cluster.kill(PARENT)
                restarts.append(asyncio.get_running_loop().create_task(cluster.restart(PARENT)))

        cluster.on_dial = kill
        tree = plant(cluster.nodes[0].generations.store, NEW)
        assert await cluster.switch(tree) == (RANKS, {}, {})
        assert workdirs(cluster) == [NEW] * RANKS
        assert restarts

    run(tmp_path, main)


def test_a_process_that_ends_again_and_again_ends_the_sync(tmp_path: Path) -> None:
    async def main(cluster: CodeCluster) -> None:

        def kill(rank: int, _to: int, service: str) -> None:
            if (rank, service) == (CHILD, "blocks"):
                cluster.kill(CHILD)
                cluster.start(CHILD)

        cluster.on_dial = kill
        tree = plant(cluster.nodes[0].generations.store, NEW)
        switched = await cluster.switch(tree)
        assert switched == (0, {CHILD: "its process ends again and again"}, {})
        assert workdirs(cluster) == [OLD] * RANKS

    run(tmp_path, main)


def test_a_parent_without_the_blocks_is_passed_over(tmp_path: Path) -> None:
    async def main(cluster: CodeCluster) -> None:
        dialed: set[tuple[int, int]] = set()
        cluster.on_dial = lambda rank, to, service: (
            dialed.add((rank, to)) if service == "blocks" else None
        )
        tree = plant(cluster.nodes[0].generations.store, NEW)

        async def contents(_digests: list[str]) -> list[bytes]:
            return [b"something else"]

        cluster.nodes[PARENT].blocks._contents = contents
        assert await cluster.switch(tree) == (RANKS, {}, {})
        assert workdirs(cluster) == [NEW] * RANKS
        assert {(CHILD, PARENT), (CHILD, 0)} <= dialed

    run(tmp_path, main)


def test_ranks_that_lose_their_parent_after_the_decision_get_it_from_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)

        def decide(path: Path, text: str) -> bool:
            cluster.kill(PARENT)
            return write_note(path, text)

        cluster.nodes[PARENT].switches._mark.touch()
        monkeypatch.setattr(switching, "write_note", decide)
        switched = await cluster.switch(tree)
        assert switched == (RANKS - 1, {}, {PARENT: "it does not answer"})
        models = workdirs(cluster)
        assert models.pop(PARENT) == OLD
        assert models == [NEW] * (RANKS - 1)
        # It is right before anything else happens on it.
        await cluster.restart(PARENT)
        await eventually(lambda: workdirs(cluster) == [NEW] * RANKS)

    run(tmp_path, main)


def test_the_decision_is_reported_before_ranks_switch(tmp_path: Path) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)
        reports: list[tuple[str, list[Model]]] = []
        head = cluster.nodes[0].switches
        head.on_decided = lambda decided: reports.append((decided, workdirs(cluster)))
        await cluster.switch(tree)
        assert reports == [(tree, [OLD] * RANKS)]

    run(tmp_path, main)


def test_a_newer_tree_takes_the_place_of_one_that_is_not_decided(tmp_path: Path) -> None:
    async def main(cluster: CodeCluster) -> None:
        head, fetcher = cluster.nodes[0].switches, cluster.nodes[CHILD].switches._member.fetcher
        trees = [plant(cluster.nodes[0].generations.store, each) for each in (NEW, {"new": b"er"})]
        prepare, ready = fetcher.prepare, asyncio.Event()

        async def hang(tree: str, hints: list[str]) -> None:
            await (asyncio.Event().wait() if tree == trees[0] else prepare(tree, hints))

        fetcher.prepare = hang
        older = asyncio.ensure_future(head.switch(trees[0], lambda count, _: count and ready.set()))
        await ready.wait()
        assert (await asyncio.wait_for(cluster.switch(trees[1]), 20)).ranks == RANKS
        assert cluster.currents() == [trees[1]] * RANKS
        with pytest.raises(ReplacedError):
            await older

    run(tmp_path, main)


def test_ranks_get_ready_for_the_next_switch_after_a_pause_which_the_next_one_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switching, "_TIDY_AFTER_S", 60.0)

    async def main(cluster: CodeCluster) -> None:
        store = cluster.nodes[0].generations.store
        await cluster.switch(plant(store, NEW))
        paused = [node.switches._tidying for node in cluster.nodes.values()]
        assert [task and task.done() for task in paused] == [False] * RANKS
        await cluster.switch(plant(store, OLD))
        assert all(task and task.done() for task in paused)

    run(tmp_path, main)


async def switch_around(
    cluster: CodeCluster, tree: str, meanwhile: Callable[[], Coroutine[Any, Any, None]]
) -> Switched:
    """Switch, and do something when all ranks but the last one have prepared."""
    may_go_on = asyncio.Event()
    fetcher = cluster.nodes[RANKS - 1].switches._member.fetcher
    prepare = fetcher.prepare

    async def wait(*arguments: Any) -> None:
        await may_go_on.wait()
        await prepare(*arguments)

    ready: list[int] = []
    fetcher.prepare = wait
    head = cluster.nodes[0].switches
    switching = asyncio.ensure_future(head.switch(tree, lambda count, _ranks: ready.append(count)))
    await eventually(lambda: ready and ready[-1] == RANKS - 1)
    await meanwhile()
    may_go_on.set()
    return await switching


@pytest.mark.slow
@pytest.mark.parametrize("lost", [PARENT, CHILD])
def test_a_rank_that_is_started_again_after_it_prepared_switches_with_all(
    tmp_path: Path, lost: int
) -> None:
    async def main(cluster: CodeCluster) -> None:
        async def restart() -> None:
            cluster.nodes[lost].switches._mark.touch()
            cluster.kill(lost)
            await cluster.restart(lost)

        tree = plant(cluster.nodes[0].generations.store, NEW)
        assert not (await switch_around(cluster, tree, restart)).failures
        await eventually(lambda: workdirs(cluster) == [NEW] * RANKS)

    run(tmp_path, main)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [PARENT, CHILD])
def test_a_rank_that_is_lost_after_it_prepared_keeps_all_on_the_old_code(
    tmp_path: Path, lost: int
) -> None:
    async def main(cluster: CodeCluster) -> None:
        async def kill() -> None:
            cluster.kill(lost)
            # The parent of the lost rank notices.
            await asyncio.sleep(2 * switching._LOOK_S)

        tree = plant(cluster.nodes[0].generations.store, NEW)
        switched = await switch_around(cluster, tree, kill)
        assert switched == (0, {lost: "it does not answer: the connection was refused"}, {})
        assert workdirs(cluster) == [OLD] * RANKS

    run(tmp_path, main)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_rank_whose_stream_carries_nothing_any_more_is_reminded_of_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_restarted: bool
) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)

        wires: list[Any] = []

        def decide(path: Path, text: str) -> bool:
            # The head has dialed its first child first; neither data nor an end arrives there.
            wires.append(cluster._streams[0][0].writer.transport)
            wires[0].write = wires[0].close = lambda *_: None
            monkeypatch.setattr(rounds, "_SILENCE_S", 0.2)
            return write_note(path, text)

        monkeypatch.setattr(switching, "write_note", decide)
        if is_restarted:
            cluster.nodes[0].switches._mark.touch()
            task = asyncio.ensure_future(cluster.switch(tree))
            await eventually(lambda: cluster.nodes[0].generations.current == tree)
            task.cancel()
            cluster.kill(0)
            await cluster.restart(0)
        else:
            await cluster.switch(tree)
        await eventually(lambda: workdirs(cluster) == [NEW] * RANKS)
        del wires[0].write, wires[0].close

    run(tmp_path, main)


def test_a_rank_that_does_not_get_on_ends_the_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(cluster: CodeCluster) -> None:
        async def hang(*_arguments: Any) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(rounds, "STUCK_S", 0.5)
        for rank in (0, CHILD):
            fetcher = cluster.nodes[rank].switches._member.fetcher
            fetcher.prepare = hang
        switched = await cluster.switch(plant(cluster.nodes[0].generations.store, NEW))
        assert {0, CHILD} <= switched.failures.keys()
        assert "has not got on" in switched.failures[CHILD]
        assert workdirs(cluster) == [OLD] * RANKS

    run(tmp_path, main)


class Killed(BaseException):
    """The end of the head's process."""


def kill_head(cluster: CodeCluster) -> None:
    cluster.kill(0)
    raise Killed


def test_a_head_that_is_killed_after_its_decision_completes_the_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)
        cluster.nodes[0].switches._mark.touch()

        def decide(path: Path, text: str) -> bool:
            write_note(path, text)
            kill_head(cluster)
            return True

        monkeypatch.setattr(switching, "write_note", decide)
        with pytest.raises(Killed):
            await cluster.switch(tree)
        assert workdirs(cluster) == [OLD] * RANKS
        monkeypatch.undo()
        await cluster.restart(0)
        await eventually(lambda: workdirs(cluster) == [NEW] * RANKS)

    run(tmp_path, main)


def test_a_head_that_is_killed_before_its_decision_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(cluster: CodeCluster) -> None:
        tree = plant(cluster.nodes[0].generations.store, NEW)
        cluster.nodes[0].switches._mark.touch()
        monkeypatch.setattr(switching, "write_note", lambda *_: kill_head(cluster))
        with pytest.raises(Killed):
            await cluster.switch(tree)
        monkeypatch.undo()
        await cluster.restart(0)
        assert workdirs(cluster) == [OLD] * RANKS
        assert await cluster.switch(tree) == (RANKS, {}, {})
        assert workdirs(cluster) == [NEW] * RANKS

    run(tmp_path, main)
