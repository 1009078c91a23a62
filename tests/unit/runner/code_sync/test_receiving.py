"""A laptop sends code to the head node over a connected pair of sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.code.manifest import BLOCK_BYTES, File, digest_of
from monarch_client.runner.code.store import Store
from monarch_client.runner.code.trees import Trees
from monarch_client.runner.code_sync import messages, receiving
from monarch_client.runner.code_sync.receiving import CodeService, Kept, Switched
from monarch_client.sync import sending
from monarch_client.sync.scanning import ChangedMeanwhileError, Scanner, Snapshot
from monarch_client.sync.sending import CodeSender, StreamLostError, SyncError, SyncProgress
from monarch_client.sync.stat_cache import StatCache


@dataclass
class Stream:
    """A node stream as a service sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def accept(self, **_fields: Any) -> None:
        """Do nothing: no line is awaited."""


@dataclass
class Head:
    """A head node with two ranks, in a thread; `failures` are those of its next switches."""

    folder: Path
    failures: dict[int, str] = field(default_factory=dict)
    switched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.folder)
        self.trees = Trees(self.store)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._executor = ThreadPoolExecutor(1)
        self._streams: list[Future[None]] = []
        self._service = CodeService(
            self.trees, self.store, self._executor, self._switch, self._kept_of
        )

    def connect(self) -> socket.socket:
        """Open a stream; return the laptop's end."""
        near, far = socket.socketpair()
        self._streams.append(asyncio.run_coroutine_threadsafe(self._serve(far), self._loop))
        return near

    def close(self) -> None:
        for stream in self._streams:
            stream.result(timeout=20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._executor.shutdown()

    async def _serve(self, far: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=far, limit=messages.MAX_LINE_BYTES)
        try:
            await self._service.serve(Stream(reader, writer))
            writer.write_eof()
            await reader.read()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def _switch(self, tree: str, on_ready: Callable[[int, int], None]) -> Switched:
        on_ready(1, 2)
        on_ready(2, 2)
        if not self.failures:
            self.switched.append(tree)
        return Switched(2, self.failures, {})

    async def _kept_of(self, _tree: str, waits: bool) -> Kept:
        return Kept("too large") if waits else Kept("", is_pending=True)


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    head = Head(tmp_path / "blocks")
    yield head
    head.close()


@dataclass
class Laptop:
    """A laptop's folder, and its stream to the head."""

    folder: Path
    connect: Callable[[], socket.socket]
    progress: list[SyncProgress] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._scanner = Scanner(self.folder, StatCache())
        self.open()

    def open(self) -> None:
        self.socket = self.connect()
        self.socket.settimeout(20)
        self.file = self.socket.makefile("rb")
        self.sender = CodeSender(self.file, self.socket.sendall, self.progress.append)

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def write(self, path: str, content: bytes | str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def scan(self) -> Snapshot:
        return self._scanner.scan()

    def ask(self, *lines: bytes) -> dict[str, Any]:
        """Send bytes, and return the first answer that neither requests blocks nor is `busy`."""
        self.socket.sendall(b"".join(lines))
        while {"need", "busy"} & (answer := json.loads(self.file.readline())).keys():
            pass
        return answer


@pytest.fixture
def laptop(tmp_path: Path, head: Head) -> Iterator[Laptop]:
    laptop = Laptop(tmp_path / "laptop", head.connect)
    laptop.write("train.py", "import lib.model")
    laptop.write("lib/model.py", "x = 1")
    laptop.write("lib/deep/er/still.py", "y = 1")
    yield laptop
    laptop.close()


@pytest.mark.feature("S1.4")
def test_a_tree_arrives_whole_and_the_next_one_sends_what_is_new(head, laptop):
    first = laptop.scan()
    sent = laptop.sender.send(first)
    assert (sent.files, sent.ranks, head.switched) == (3, 2, [first.tree])
    assert (sent.unkept, sent.is_keeping) == ("", True)
    assert laptop.sender.await_kept(first.tree) == "too large"
    assert head.trees.missing_blocks(first.tree) == []
    laptop.write("lib/model.py", "x = 2")
    (laptop.folder / "train.py").unlink()
    second = laptop.scan()
    sent = laptop.sender.send(second)
    # The file, and the manifests of the two folders above it.
    changed = [each for name, each in second.manifests.items() if name not in first.manifests]
    assert (sent.files, len(changed)) == (1, 2)
    assert sent.sent_bytes == len("x = 2") + sum(map(len, changed))
    assert head.switched == [first.tree, second.tree]
    assert head.trees.missing_blocks(second.tree) == []


def test_progress_counts_files_and_bytes_and_then_ranks(laptop):
    laptop.write("big", bytes(BLOCK_BYTES) + b"1")
    snapshot = laptop.scan()
    laptop.sender.send(snapshot)
    size = snapshot.size_bytes + sum(map(len, snapshot.manifests.values()))
    *_, last_block, one, both = laptop.progress
    assert (last_block.files, last_block.all_files) == (4, 4)
    assert (last_block.sent_bytes, last_block.all_bytes) == (size, size)
    assert [(each.ready_ranks, each.all_ranks) for each in (one, both)] == [(1, 2), (2, 2)]


@pytest.mark.feature("S1.4")
def test_a_large_file_of_which_one_block_changed_sends_one_block(laptop):
    content = [bytes([number]) * BLOCK_BYTES for number in range(5)]
    laptop.write("weights", b"".join(content))
    laptop.sender.send(laptop.scan())
    content[2] = b"?" * BLOCK_BYTES
    laptop.write("weights", b"".join(content))
    snapshot = laptop.scan()
    sent = laptop.sender.send(snapshot)
    assert sent.sent_bytes == BLOCK_BYTES + len(snapshot.manifests[snapshot.tree])


def test_many_files_are_requested_in_several_lines(head, laptop, monkeypatch):
    monkeypatch.setattr(messages, "MOST_NAMES", 40)
    for number in range(100):
        laptop.write(f"data/{number}", str(number))
    assert laptop.sender.send(laptop.scan()).files == 103
    assert len(head.switched) == 1


def test_folders_that_the_laptop_does_not_name_are_found_level_by_level(head, laptop, monkeypatch):
    monkeypatch.setattr(messages, "MOST_FOLDERS", 0)
    snapshot = laptop.scan()
    assert laptop.sender.send(snapshot).files == 3
    assert head.trees.missing_blocks(snapshot.tree) == []


def test_a_file_that_changes_while_it_is_sent_begins_the_sync_anew(head, laptop):
    laptop.write("a.py", "1")
    stale = laptop.scan()
    laptop.write("a.py", "22")
    with pytest.raises(ChangedMeanwhileError, match=r"a\.py"):
        laptop.sender.send(stale)
    fresh = laptop.scan()
    laptop.sender.send(fresh)
    assert head.switched == [fresh.tree]


def test_blocks_that_arrived_before_an_interruption_are_not_sent_again(head, laptop, monkeypatch):
    monkeypatch.setattr(sending, "BATCH_BYTES", 1)
    laptop.write("large", bytes(range(256)) * 4096)
    snapshot = laptop.scan()
    blocks = 0

    def interrupted(data: bytes) -> None:
        nonlocal blocks
        blocks += b'"block"' in data[:20]
        if blocks == len(snapshot.manifests) + 2:
            laptop.socket.shutdown(socket.SHUT_RDWR)
        laptop.socket.sendall(data)

    with pytest.raises(StreamLostError):
        CodeSender(laptop.file, interrupted, laptop.progress.append).send(snapshot)
    laptop.close()
    laptop.open()
    assert laptop.sender.send(snapshot).sent_bytes < snapshot.size_bytes + sum(
        map(len, snapshot.manifests.values())
    )
    assert head.switched == [snapshot.tree]


def test_a_rank_that_fails_is_named_with_its_reason_and_the_next_sync_can_succeed(head, laptop):
    head.failures = {1: "No space left on device"}
    with pytest.raises(SyncError, match=r"No node has switched.*node 1: No space left on device"):
        laptop.sender.send(laptop.scan())
    head.failures = {}
    laptop.close()
    laptop.open()
    laptop.sender.send(laptop.scan())
    assert len(head.switched) == 1


def test_a_head_without_room_says_so(head, laptop):
    shutil.rmtree(head.folder)
    head.folder.write_text("in the way")
    with pytest.raises(SyncError, match="The head node refused the code: it cannot be stored"):
        laptop.sender.send(laptop.scan())
    assert head.switched == []


def test_hostile_laptops_are_refused_and_nothing_switches(head, laptop):
    manifest = b'{"..":{"link":"x"}}'
    tree = digest_of(manifest)
    other = "f" * 64
    block = messages.pack(block=tree, size=len(manifest)) + manifest
    for lines, said in (
        ([messages.pack(sync="../../etc")], "no such name"),
        ([messages.pack(sync=tree, folders=["x"])], "no such name"),
        ([messages.pack(sync=tree), block.replace(b"link", b"LINK")], "damaged"),
        ([messages.pack(sync=tree), block], "not a name that every node can have"),
        ([messages.pack(sync=other), messages.pack(block=other, size=1 << 40)], "too large"),
    ):
        answer = laptop.ask(*lines)
        assert said in answer["failed"], answer
        laptop.close()
        laptop.open()
    for garbage in (b"[]\n", b"{\n", messages.pack(sync=other) + messages.pack(block=tree)):
        with pytest.raises((AssertionError, ValueError, OSError)):
            assert not laptop.ask(garbage)
        laptop.close()
        laptop.open()
    laptop.sender.send(laptop.scan())
    assert len(head.switched) == 1


def test_a_file_is_whole_in_the_store(head, laptop):
    laptop.write("some", "text")
    snapshot = laptop.scan()
    laptop.sender.send(snapshot)
    file = snapshot.files["some"]
    assert isinstance(file, File)
    assert b"".join(map(head.store.read, file.blocks)) == b"text"


def test_a_laptop_that_sends_nothing_delays_no_other_and_is_given_up(head, laptop, monkeypatch):
    monkeypatch.setattr(receiving, "_SILENCE_S", 0.3)
    stalled = Laptop(laptop.folder.parent / "stalled", head.connect)
    with contextlib.closing(stalled):
        stalled.write("large", bytes(5000))
        snapshot = stalled.scan()
        stalled.socket.sendall(messages.pack(sync=snapshot.tree, folders=[]))
        assert "need" in json.loads(stalled.file.readline())
        laptop.sender.send(laptop.scan())
        assert len(head.switched) == 1
        answer = stalled.ask(messages.pack(block=snapshot.tree, size=100), b"{")
        assert "received nothing for 0.3 s" in answer["failed"]


def test_a_head_at_work_says_so_and_one_that_says_nothing_is_given_up(laptop):
    near, far = socket.socketpair()
    near.settimeout(0.2)
    far.sendall(messages.pack(busy=True))
    with near, far, near.makefile("rb") as file:
        sender = CodeSender(file, near.sendall, laptop.progress.append)
        with pytest.raises(StreamLostError, match="does not answer"):
            sender.send(laptop.scan())
