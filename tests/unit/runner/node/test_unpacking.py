"""Unpacking on a node: as the portal's own, and without trust in its checks."""

from __future__ import annotations

import contextlib
import os
import tarfile
import threading
from pathlib import Path

import pytest

from monarch_client.runner.base.config import NodeFolder, Upload
from monarch_client.runner.node import unpacking
from monarch_client.runner.node.unpacking import UploadError, lay_out, unpack
from monarch_client.sync.archive import pack
from tests.each_case import check_each
from tests.unit.sync.archives import folder, link, member, tar_gz, tree
from tests.unit.sync.test_hostile_archives import BROKEN, HOSTILE


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_what_the_portal_refuses_is_refused_here_and_nothing_leaves_the_folder(
    tmp_path: Path,
) -> None:
    def check(name: str) -> None:
        content = tar_gz(*HOSTILE[name], format=tarfile.GNU_FORMAT).getvalue()
        top = tmp_path / name
        target = top / "a" / "in"
        target.mkdir(parents=True)
        (top / "outside").write_text("untouched")
        with pytest.raises(UploadError):
            unpack(written(top / "x.tar.gz", content), target)
        assert (top / "outside").read_text() == "untouched"
        assert [path.name for path in (top / "a").iterdir()] == ["in"]
        assert sorted(path.name for path in top.iterdir()) == ["a", "outside", "x.tar.gz"]

    check_each(HOSTILE, check)


def test_broken_archives_are_refused(tmp_path: Path) -> None:
    def check(name: str) -> None:
        target = tmp_path / name / "in"
        target.mkdir(parents=True)
        with pytest.raises(UploadError):
            unpack(written(tmp_path / name / "x.tar.gz", BROKEN[name].getvalue()), target)

    check_each(BROKEN, check)


def test_what_was_packed_comes_out_as_it_went_in(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a" / "empty").mkdir(parents=True)
    (source / "a" / "run").write_text("x")
    (source / "a" / "run").chmod(0o755)
    (source / "a" / "link").symlink_to("../b")
    (source / "b").write_text("y")
    pack(source, tmp_path / "x.tar.gz")
    (tmp_path / "in").mkdir()
    for _ in range(2):
        unpack(tmp_path / "x.tar.gz", tmp_path / "in")
        assert tree(tmp_path / "in") == tree(source)
    assert (tmp_path / "in" / "a" / "run").stat().st_mode & 0o100


def test_files_and_links_in_the_way_are_replaced_and_never_written_through(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (outside / "keep").write_text("kept")
    (target / "folder").symlink_to(outside)
    (target / "file").symlink_to(outside / "keep")
    (target / "plain").write_text("old")
    members = [member("folder/keep", b"new"), member("file", b"new"), member("plain/deep", b"new")]
    unpack(written(tmp_path / "x.tar.gz", tar_gz(*members).getvalue()), target)
    assert tree(outside) == {"keep": "kept"}
    assert (
        tree(target)["folder/keep"] == tree(target)["file"] == tree(target)["plain/deep"] == "new"
    )


def test_a_file_never_replaces_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "in" / "x").mkdir(parents=True)
    with pytest.raises(UploadError):
        unpack(
            written(tmp_path / "x.tar.gz", tar_gz(member("x", b"1")).getvalue()), tmp_path / "in"
        )
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["x"]


def test_more_than_the_portal_takes_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_ARCHIVE_BYTES", 10)
    monkeypatch.setattr(unpacking, "MAX_ARCHIVE_MEMBERS", 3)
    (tmp_path / "in").mkdir()
    for members in ([member("x", b"0" * 11)], [member("a/b/c/d")]):
        with pytest.raises(UploadError, match="more than the portal takes"):
            unpack(written(tmp_path / "x.tar.gz", tar_gz(*members).getvalue()), tmp_path / "in")


def test_nodes_that_share_a_disk_may_unpack_at_the_same_time(tmp_path: Path) -> None:
    members = [folder("a"), *(member(f"a/{n}", b"x" * 5000) for n in range(200)), link("l", "a/1")]
    archive = written(tmp_path / "x.tar.gz", tar_gz(*members).getvalue())
    (tmp_path / "in").mkdir()
    errors: list[Exception] = []

    def work() -> None:
        try:
            unpack(archive, tmp_path / "in")
        except UploadError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(tree(tmp_path / "in")) == 202


def test_a_folder_that_another_node_makes_at_the_same_moment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = written(tmp_path / "x.tar.gz", tar_gz(folder("a"), member("a/b", b"x")).getvalue())
    (tmp_path / "in").mkdir()
    is_dir = Path.is_dir

    def made_meanwhile(path: Path) -> bool:
        was_there = is_dir(path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)  # noqa: PTH102 - Path.mkdir asks is_dir
        return was_there

    monkeypatch.setattr(Path, "is_dir", made_meanwhile)
    unpack(archive, tmp_path / "in")
    assert (tmp_path / "in" / "a" / "b").read_bytes() == b"x"


@pytest.mark.parametrize("target", ["data", "~/../x", "/a/../../b", "~other/x", ""])
def test_a_place_that_is_not_what_it_says_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(UploadError):
        lay_out(Upload(tmp_path / "x.tar.gz", target), NodeFolder(tmp_path))
