"""Blocks, manifests and trees: what goes in comes out, and nothing else comes in."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from monarch_client.runner.code.errors import BlockMissingError, FormatError
from monarch_client.runner.code.manifest import (
    BLOCK_BYTES,
    File,
    Folder,
    Link,
    digest_of,
    encode,
    parse,
)
from monarch_client.runner.code.store import Store
from monarch_client.runner.code.trees import Trees
from monarch_client.runner.vocabulary.limits import MAX_CODE_DEPTH
from tests.code_trees import Model, plant, plant_file, read_back
from tests.each_case import check_each
from tests.unit.runner.code.models import MODELS

BLOCK = "0" * 64


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "blocks")


@settings(max_examples=20)
@given(MODELS)
def test_a_tree_comes_back_as_it_was_also_after_a_restart(model: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = plant(Store(Path(folder)), model)
        reopened = Store(Path(folder))
        assert read_back(reopened, tree) == model
        assert Trees(reopened).missing_folders(tree) == []
        assert Trees(reopened).missing_blocks(tree) == []


@settings(max_examples=20)
@given(MODELS, MODELS)
def test_trees_have_one_name_only_if_they_are_equal(one: Model, other: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        assert (plant(store, one) == plant(store, other)) is (one == other)


@settings(max_examples=20)
@given(MODELS, MODELS)
def test_only_what_a_receiver_lacks_is_sent(held: Model, wanted: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sender, receiver = Store(Path(folder, "sender")), Store(Path(folder, "receiver"))
        plant(receiver, held)
        tree = plant(sender, wanted)
        before = set(receiver.missing(Trees(sender).blocks(tree)))
        sent: list[str] = []
        trees = Trees(receiver)
        while missing := trees.missing_folders(tree):
            sent += [receiver.add(sender.read(each), each) for each in missing]
        sent += [receiver.add(sender.read(each), each) for each in trees.missing_blocks(tree)]
        assert read_back(receiver, tree) == wanted
        assert sorted(sent) == sorted(before)


def test_a_large_file_with_one_changed_byte_lacks_one_block(store: Store) -> None:
    content = bytearray(os.urandom(4) * BLOCK_BYTES)
    plant_file(store, bytes(content))
    content[2 * BLOCK_BYTES + 17] ^= 1
    other = Store(store.path_of(BLOCK).parents[1].with_name("other"))
    file = plant_file(other, bytes(content))
    assert store.missing(file.blocks) == [file.blocks[2]]


def test_hostile_manifests_are_refused() -> None:
    file = {"blocks": [BLOCK], "size": 1}
    names = ["", ".", "..", "a/b", "/a", "a\0", "a\nb", "x" * 256]
    links = ["", "/etc/passwd", "a/../../b", "a\0", "x/" * 2000]
    files = [
        {"blocks": [], "size": 1},
        {"blocks": [BLOCK], "size": 0},
        {"blocks": [BLOCK], "size": -1},
        {"blocks": [BLOCK], "size": True},
        {"blocks": [BLOCK], "size": 1.0},
        {"blocks": [BLOCK], "size": BLOCK_BYTES + 1},
        {"blocks": ["../../etc/passwd"], "size": 1},
        {"blocks": [BLOCK.upper().replace("0", "A")], "size": 1},
        {"blocks": BLOCK, "size": 64 * BLOCK_BYTES},
        {**file, "executable": False},
        {**file, "executable": 1},
        {**file, "mode": 0o4755},
        {"folder": "../up"},
        {"folder": BLOCK, "link": "a"},
        {},
        [],
        None,
    ]
    plain = [
        *({name: file} for name in names),
        *({"a": {"link": target}} for target in links),
        *({"a": each} for each in files),
        [],
        "text",
        None,
    ]
    check_each([(each,) for each in map(_canonical, plain)], _is_refused)
    spellings = [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"a": {"link":"b"}}',
        b'{"a":{"link":"b"},"a":{"link":"b"}}',
        b'{"b":{"link":"b"},"a":{"link":"b"}}',
        b'{"a":{"link":"\\u0062"}}',
        b'{"\\ud800":{"link":"b"}}',
        b'{"a":{"blocks":[],"size":NaN}}',
        b'{"a":{"blocks":[],"size":' + b"9" * 10_000 + b"}}",
    ]
    check_each([(each,) for each in spellings], _is_refused)


def _canonical(plain: object) -> bytes:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _is_refused(content: bytes) -> None:
    with pytest.raises(FormatError):
        parse(content)


def test_a_link_may_climb_to_the_top_of_the_tree_and_no_further(store: Store) -> None:
    def tree_with(target: str) -> str:
        inner = store.add(encode({"link": Link(target)}))
        return store.add(encode({"folder": Folder(inner)}))

    assert Trees(store).check(tree_with("../other")).climb == 0
    with pytest.raises(FormatError, match="leads out"):
        Trees(store).check(tree_with("../../other"))
    # The same folder is fine one level further below, whichever is checked first.
    below = store.add(encode({"deep": Folder(tree_with("../../other"))}))
    Trees(store).check(below)


def test_a_small_manifest_cannot_describe_an_endless_tree(store: Store) -> None:
    bomb = store.add(encode({"file": File(1, (BLOCK,))}))
    for _ in range(40):
        bomb = store.add(encode({name: Folder(bomb) for name in "abcd"}))
    with pytest.raises(FormatError, match="files and folders"):
        Trees(store).missing_blocks(bomb)


def test_folders_deeper_than_the_limit_are_refused(store: Store) -> None:
    folder = store.add(encode({}))
    for _ in range(MAX_CODE_DEPTH):
        folder = store.add(encode({"d": Folder(folder)}))
    trees = Trees(store)
    assert trees.check(folder).depth == MAX_CODE_DEPTH
    with pytest.raises(FormatError, match="deep"):
        trees.check(store.add(encode({"d": Folder(folder)})))


def test_damaged_blocks_neither_enter_nor_leave_a_store(store: Store) -> None:
    with pytest.raises(FormatError, match="damaged"):
        store.add(b"other content", digest_of(b"content"))
    name = store.add(b"content")
    path = store.path_of(name)
    path.chmod(0o644)
    path.write_bytes(b"changed")
    with pytest.raises(BlockMissingError):
        store.read(name)
    assert store.missing([name, name]) == [name]
    assert store.add(b"content") == name
    assert store.read(name) == b"content"


def test_what_a_killed_writer_left_is_removed(store: Store) -> None:
    name = store.add(b"content")
    folder = store.path_of(name).parents[1]
    (folder / ".draft-1-1").write_bytes(b"half of a bl")
    reopened = Store(folder)
    assert reopened.has(name)
    assert [path.name for path in folder.iterdir()] == [name[:2]]


def test_collection_removes_the_oldest_unused_blocks_first(store: Store) -> None:
    used, old, new = (store.add(bytes([each]) * 100) for each in range(3))
    store.collect({used}, most_bytes=200)
    assert (store.has(used), store.has(old), store.has(new)) == (True, False, True)
    store.collect({used}, most_bytes=0)
    assert store.size_bytes == 100
    assert not store.path_of(new).exists()


def test_a_store_survives_the_loss_of_its_files(store: Store) -> None:
    name = store.add(b"content")
    shutil.rmtree(store.path_of(name).parent)
    with pytest.raises(BlockMissingError):
        store.read(name)
    assert store.add(b"content") == name
    assert store.read(name) == b"content"
