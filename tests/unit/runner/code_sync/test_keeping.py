"""The head node keeps its current code in the portal."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code.manifest import BLOCK_BYTES, digest_of
from monarch_client.runner.code.recording import Recording
from monarch_client.runner.code.store import Store
from monarch_client.runner.code_sync import keeping
from monarch_client.runner.code_sync.keeping import Keeper, PortalAddress, pack
from monarch_client.sync.archive import check, unpack
from tests.fake_ingest import FakeIngest
from tests.unit.sync.archives import tree as tree_in
from tests.waiting import eventually


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "blocks")


@pytest.fixture
def portal() -> Iterator[FakeIngest]:
    portal = FakeIngest()
    yield portal
    portal.stop()


@pytest.fixture
def keeper(portal: FakeIngest, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    monkeypatch.setattr(keeping, "_EVERY_S", 0.01)
    monkeypatch.setattr(keeping, "_FIRST_PAUSE_S", 0.01)
    keeper = keeper_of(portal, store)
    yield keeper
    keeper.close()


def keeper_of(portal: FakeIngest, store: Store) -> Keeper:
    note = store.path_of("0" * 64).parents[2] / "kept"
    address = PortalAddress(portal.url, None, portal.token, 7)
    return Keeper(address, store, note, lambda: None)


def code(folder: Path, store: Store, text: str) -> str:
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(text)
    return Recording(store).record(folder)


def test_an_archive_has_all_of_a_tree_and_passes_the_check_of_uploads(tmp_path, store):
    folder = tmp_path / "code"
    code(folder, store, "import lib")
    (folder / "lib" / "big").write_bytes(b"ab" * BLOCK_BYTES)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "latest").symlink_to("lib/big")
    (folder / "none").touch()
    (folder / "empty").mkdir()
    file = io.BytesIO()
    pack(store, Recording(store).record(folder), file)
    assert check(file).file_count == 5
    unpack(file, tmp_path / "out")
    assert tree_in(tmp_path / "out") == tree_in(folder)
    assert (tmp_path / "out" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_code_above_the_limits_of_uploads_is_not_sent(tmp_path, store, portal, monkeypatch):
    tree = code(tmp_path / "code", store, "1")
    monkeypatch.setattr(keeping, "MAX_ARCHIVE_MEMBERS", 1)
    with pytest.raises(CodeError, match="more than 1 files"):
        pack(store, tree, io.BytesIO())


def test_the_portal_gets_the_newest_code_whatever_happens_on_the_way(
    tmp_path, store, portal, keeper
):
    portal.faults = [503, 502]
    trees = [code(tmp_path / "code", store, text) for text in "123"]
    for tree in trees:
        keeper.keep(tree)
    assert eventually(lambda: keeper.kept == trees[-1])
    assert (list(portal.codes)[-1], keeper.problem) == (trees[-1], "")
    portal.stop()
    again = code(tmp_path / "code", store, "4")
    keeper.keep(again)
    assert eventually(lambda: "does not answer" in keeper.problem)
    portal.start()
    assert eventually(lambda: keeper.kept == again)


def test_code_that_the_portal_refuses_is_not_sent_again(tmp_path, store, portal, keeper):
    portal.refusals = ["attempt_closed"]
    keeper.keep(refused := code(tmp_path / "code", store, "1"))
    assert eventually(lambda: keeper.has_result(refused))
    assert keeper.problem == "not like this"
    keeper.keep(latest := code(tmp_path / "code", store, "2"))
    assert eventually(lambda: list(portal.codes) == [latest])


def test_a_keeper_that_starts_again_does_not_send_what_the_portal_has(
    tmp_path, store, portal, keeper
):
    first, latest = (code(tmp_path / "code", store, text) for text in "12")
    keeper.keep(first)
    assert eventually(lambda: keeper.problem == "" and keeper.kept == first)
    keeper.close()
    again = keeper_of(portal, store)
    portal.codes.clear()
    again.keep(first)
    again.keep(latest)
    assert eventually(lambda: again.kept == latest)
    again.close()
    assert list(portal.codes) == [latest]


def test_code_with_a_damaged_block_is_kept_once_the_block_is_sent_again(
    tmp_path, store, portal, keeper
):
    tree = code(tmp_path / "code", store, "whole")
    store.forget(digest_of(b"whole"))
    keeper.keep(tree)
    assert eventually(lambda: "is missing; sync again" in keeper.problem)
    store.add(b"whole")
    assert eventually(lambda: keeper.kept == tree)
    assert (list(portal.codes), keeper.problem) == ([tree], "")


def test_a_full_disk_of_the_head_is_not_reported_as_a_silent_portal(
    tmp_path, store, keeper, monkeypatch
):
    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(keeping, "pack", full)
    keeper.keep(code(tmp_path / "code", store, "1"))
    assert eventually(lambda: "the head node cannot pack it: No space left" in keeper.problem)


def test_large_code_is_sent_less_often():
    assert (keeping.pause_after(0.1), keeping.pause_after(60)) == (10, 300)
