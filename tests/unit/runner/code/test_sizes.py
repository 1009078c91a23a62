"""Many files and large ones: what a sync costs depends on what has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code.manifest import BLOCK_BYTES
from monarch_client.sync.scanning import BlockReader, Scanner, Snapshot
from monarch_client.sync.stat_cache import StatCache

pytestmark = [pytest.mark.slow, pytest.mark.feature("S1.4")]

FOLDERS, FILES = 100, 200
LARGE_BLOCKS = 512


def transfer(snapshot: Snapshot, generations: Generations) -> int:
    """Switch a node to a snapshot, and return the number of blocks that it lacked."""
    store, trees, reader = generations.store, generations.trees, BlockReader(snapshot)
    sent = 0
    while missing := trees.missing_folders(snapshot.tree):
        sent += len([store.add(reader.read(digest), digest) for digest in missing])
    for digest in trees.missing_blocks(snapshot.tree):
        store.add(reader.read(digest), digest)
        sent += 1
    generations.prepare(snapshot.tree)
    generations.switch(snapshot.tree)
    generations.tidy()
    return sent


@pytest.fixture
def node(tmp_path: Path) -> Generations:
    (tmp_path / "node" / "workdir").mkdir(parents=True)
    generations = Generations(tmp_path / "node" / "code", tmp_path / "node" / "workdir")
    generations.adopt(generations.record())
    return generations


def test_one_change_among_20_000_files_sends_its_block_and_two_manifests(
    tmp_path: Path, node: Generations
) -> None:
    laptop = tmp_path / "laptop"
    for folder in range(FOLDERS):
        (laptop / str(folder)).mkdir(parents=True)
        for file in range(FILES):
            (laptop / str(folder) / f"{file}.py").write_text(f"{folder} {file}")
    scanner = Scanner(laptop, StatCache())
    assert transfer(scanner.scan(), node) == FOLDERS * (FILES + 1) + 1
    (laptop / "7" / "7.py").write_text("changed")
    (laptop / "8" / "8.py").unlink()
    assert transfer(scanner.scan(), node) == 1 + 3
    workdir = tmp_path / "node" / "workdir"
    assert (workdir / "7" / "7.py").read_text() == "changed"
    found = sum(len(files) for _, _, files in os.walk(workdir))
    assert found == FOLDERS * FILES - 1


def test_a_large_file_with_one_changed_block_sends_that_block(
    tmp_path: Path, node: Generations
) -> None:
    laptop = tmp_path / "laptop"
    laptop.mkdir()
    with (laptop / "weights").open("wb") as file:
        file.truncate(LARGE_BLOCKS * BLOCK_BYTES)
    scanner = Scanner(laptop, StatCache())
    assert transfer(scanner.scan(), node) == 1 + 1
    with (laptop / "weights").open("r+b") as file:
        file.seek(300 * BLOCK_BYTES + 17)
        file.write(b"changed")
    assert transfer(scanner.scan(), node) == 1 + 1
    weights = tmp_path / "node" / "workdir" / "weights"
    with weights.open("rb") as file:
        file.seek(300 * BLOCK_BYTES + 17)
        assert file.read(8) == b"changed\0"
    status = weights.stat()
    assert status.st_size == LARGE_BLOCKS * BLOCK_BYTES
    assert status.st_blocks * 512 <= 2 * BLOCK_BYTES
