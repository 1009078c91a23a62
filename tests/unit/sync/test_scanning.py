"""Scans of a folder: the tree that they find, what they read, and what they refuse."""

from __future__ import annotations

import os
import time
import unicodedata
from pathlib import Path

import pytest

from monarch_client.errors import ArchiveError
from monarch_client.runner.code.manifest import BLOCK_BYTES, File, Folder, Link, parse
from monarch_client.sync import scanning
from monarch_client.sync.scanning import BlockReader, ChangedMeanwhileError, Scanner, Snapshot
from monarch_client.sync.stat_cache import StatCache

LONG_AGO = 1_500_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(root / "train.py", "import model")
    write(root / "lib" / "model.py", "x = 1")
    write(root / ".git" / "HEAD", "ref")
    (root / "empty").mkdir()
    (root / "latest").symlink_to("train.py")
    write(root / "run.sh", "#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    return root


def write(path: Path, text: str | bytes, at: int = LONG_AGO) -> None:
    """Write a file that changed last at a time which is long enough ago to be trusted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (at, at))


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> StatCache:
    # Times of changes of inodes cannot be set, and tests do not wait for them to be old.
    monkeypatch.setattr(scanning.Stamp, "newest", property(lambda stamp: stamp.modified_ns))
    return StatCache()


def scanned(root: Path, cache: StatCache) -> tuple[Snapshot, list[int]]:
    """Scan a folder; return what was found, and the sizes of the files that were read."""
    reads: list[int] = []
    scanner = Scanner(root, cache)
    scanner.on_read = reads.append
    return scanner.scan(), reads


def entries_of(snapshot: Snapshot, folder: str = "") -> dict[str, object]:
    digest = snapshot.tree
    for part in filter(None, folder.split("/")):
        below = parse(snapshot.manifests[digest])[part]
        assert isinstance(below, Folder)
        digest = below.digest
    return dict(parse(snapshot.manifests[digest]))


def test_a_tree_has_files_links_and_empty_folders_and_not_what_is_ignored(project, cache):
    snapshot, _ = scanned(project, cache)
    top = entries_of(snapshot)
    assert sorted(top) == ["empty", "latest", "lib", "run.sh", "train.py"]
    assert top["latest"] == Link("train.py")
    assert isinstance(top["run.sh"], File)
    assert top["run.sh"].is_executable
    assert entries_of(snapshot, "empty") == {}
    assert list(entries_of(snapshot, "lib")) == ["model.py"]


def test_only_changed_files_are_read_again(project, cache):
    before, reads = scanned(project, cache)
    assert len(reads) == 3
    write(project / "lib" / "model.py", "x = 2", at=LONG_AGO + 1)
    write(project / "new.py", "y = 1")
    (project / "train.py").unlink()
    after, reads = scanned(project, cache)
    assert reads == [5, 5]
    assert after.changes_since(before) == ["lib/model.py", "new.py", "train.py"]
    write(project / "lib" / "model.py", "x = 1", at=LONG_AGO + 2)
    write(project / "train.py", "import model")
    (project / "new.py").unlink()
    assert scanned(project, cache)[0].tree == before.tree


def test_a_file_that_has_just_changed_is_read_again_since_its_times_may_not_tell(project, cache):
    recent = int(time.time()) + 60
    write(project / "train.py", "1", at=recent)
    first, _ = scanned(project, cache)
    write(project / "train.py", "2", at=recent)
    second, reads = scanned(project, cache)
    assert reads == [1]
    assert second.tree != first.tree


def test_a_later_program_reads_what_the_cache_does_not_know(project, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(scanning.Stamp, "newest", property(lambda stamp: stamp.modified_ns))
    first, reads = scanned(project, StatCache.of(project))
    assert len(reads) == 3
    second, reads = scanned(project, StatCache.of(project))
    assert (second.tree, reads) == (first.tree, [])
    (file,) = (tmp_path / "cache").rglob("*.json")
    for broken in (b"{", b'{"version": 1}', b"[]"):
        file.write_bytes(broken)
        assert scanned(project, StatCache.of(project))[0].tree == first.tree


def test_large_files_are_blocks_of_which_each_can_be_read(project, cache):
    content = os.urandom(2 * BLOCK_BYTES + 7)
    write(project / "weights.bin", content)
    snapshot, _ = scanned(project, cache)
    file = snapshot.files["weights.bin"]
    assert isinstance(file, File)
    reader = BlockReader(snapshot)
    assert b"".join(map(reader.read, file.blocks)) == content
    assert [reader.describe(each)[1] for each in file.blocks] == [BLOCK_BYTES, BLOCK_BYTES, 7]
    assert reader.describe(snapshot.tree) == ("", len(snapshot.manifests[snapshot.tree]))


def test_a_file_that_changes_while_it_is_read_is_read_again(project, cache, monkeypatch):
    digest_of = scanning.digest_of
    interfering = iter(["once", "twice"])

    def digest_and_interfere(content: bytes) -> str:
        if content.startswith(b"import") and (text := next(interfering, "")):
            (project / "train.py").write_text(f"import {text}")
        return digest_of(content)

    monkeypatch.setattr(scanning, "digest_of", digest_and_interfere)
    snapshot, _ = scanned(project, cache)
    reader = BlockReader(snapshot)
    file = snapshot.files["train.py"]
    assert isinstance(file, File)
    assert reader.read(file.blocks[0]) == b"import twice"


def test_a_file_that_never_stops_changing_is_named(project, cache, monkeypatch):
    digest_of = scanning.digest_of

    def digest_and_grow(content: bytes) -> str:
        if content.startswith(b"import"):
            with (project / "train.py").open("a") as file:
                file.write("#")
        return digest_of(content)

    monkeypatch.setattr(scanning, "digest_of", digest_and_grow)
    with pytest.raises(ArchiveError, match=r"train\.py changes while it is read.*leave it out"):
        scanned(project, cache)


def test_a_block_whose_file_has_changed_since_is_not_sent(project, cache):
    snapshot, _ = scanned(project, cache)
    file = snapshot.files["train.py"]
    assert isinstance(file, File)
    write(project / "train.py", "something else")
    with pytest.raises(ChangedMeanwhileError, match=r"train\.py"):
        BlockReader(snapshot).read(file.blocks[0])
    (project / "train.py").unlink()
    os.mkfifo(project / "train.py")
    with pytest.raises(ChangedMeanwhileError, match=r"train\.py"):
        BlockReader(snapshot).read(file.blocks[0])


def test_names_that_a_node_cannot_have_are_refused_with_their_path(project, cache):
    for name, said in (
        ("lib/a\nb", r"a\\nb' is not a name"),
        (b"lib/\xff".decode(errors="surrogateescape"), "is not UTF-8"),
    ):
        write(project / name, "x")
        with pytest.raises(ArchiveError, match=said):
            scanned(project, cache)
        (project / name).unlink()
    (project / "out").symlink_to("/etc/passwd")
    with pytest.raises(ArchiveError, match=r"The link out leads to /etc/passwd"):
        scanned(project, cache)


def test_names_that_differ_in_case_or_normalization_are_taken_as_submit_takes_them(project, cache):
    for name in ("README.md", "readme.md", "\u00e9.py", unicodedata.normalize("NFD", "\u00e9.py")):
        write(project / "lib" / name, name)
    snapshot, _ = scanned(project, cache)
    entries = entries_of(snapshot, "lib")
    assert {"README.md", "readme.md", "\u00e9.py", "e\u0301.py"} <= entries.keys()


def test_a_scanner_that_remembers_finds_what_a_new_one_does(project, cache):
    scanner = Scanner(project, cache)
    changes = (
        lambda: write(project / "lib" / "model.py", "x = 2", LONG_AGO + 1),
        lambda: (project / "lib" / "model.py").chmod(0o755),
        lambda: write(project / "lib" / "new" / "deep.py", "1"),
        lambda: (project / "lib" / "new").rename(project / "other"),
        (project / "other" / "deep.py").unlink,
        (project / "latest").unlink,
        (project / "empty").rmdir,
        lambda: write(project / "empty", "a file now"),
    )
    trees = [scanner.scan().tree]
    for change in changes:
        change()
        found, fresh = scanner.scan(), Scanner(project, StatCache()).scan()
        assert (found.tree, found.manifests) == (fresh.tree, fresh.manifests)
        trees.append(found.tree)
    assert len(set(trees)) == len(trees)
