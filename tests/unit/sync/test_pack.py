"""Packing a folder: what travels, what stays, and always the same bytes."""

from __future__ import annotations

import os
import socket
import tarfile

import pytest

from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.sync.archive import Limits, check, unpack
from tests.unit.sync.archives import packed, tree


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    for name in (
        "src/train.py",
        "src/deep/er.py",
        ".git/HEAD",
        "src/__pycache__/x.pyc",
        "data/1.bin",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o750)
    (root / "empty").mkdir()
    (root / "latest").symlink_to("src/train.py")
    (root / "ünïcode 文").write_text("x")
    return root


def test_a_folder_arrives_as_it_was_without_caches_and_git(project, tmp_path):
    done = packed(tmp_path, project)
    unpack(done.path, tmp_path / "out")
    assert tree(tmp_path / "out") == {
        "data": "/",
        "data/1.bin": "data/1.bin",
        "empty": "/",
        "latest": "-> src/train.py",
        "run.sh": "#!/bin/sh\n",
        "src": "/",
        "src/deep": "/",
        "src/deep/er.py": "src/deep/er.py",
        "src/train.py": "src/train.py",
        "ünïcode 文": "x",
    }
    assert os.access(tmp_path / "out" / "run.sh", os.X_OK)
    assert not os.access(tmp_path / "out" / "data" / "1.bin", os.X_OK)


def test_what_pack_says_is_what_check_finds(project, tmp_path):
    done, facts = packed(tmp_path, project), check(tmp_path / "packed.tar.gz")
    assert (done.digest, done.size_bytes) == (facts.digest, facts.size_bytes)
    assert done.file_count == facts.file_count == 6
    assert done.reference == f"upload:{facts.digest}"


def test_the_same_content_gives_the_same_bytes_whatever_its_times_and_owners(project, tmp_path):
    first = packed(tmp_path, project, "first.tar.gz")
    os.utime(project / "src" / "train.py", (1, 1))
    (project / "run.sh").chmod(0o700)
    second = packed(tmp_path, project, "second.tar.gz")
    assert first.path.read_bytes() == second.path.read_bytes()
    (project / "src" / "train.py").write_text("changed")
    assert packed(tmp_path, project).digest != first.digest


@pytest.mark.parametrize("name", [".mportalignore", ".skyignore"])
def test_an_ignore_file_says_what_stays_behind(project, tmp_path, name):
    (project / name).write_text("# large\n*.bin\n/run.sh\n\nempty/\nsrc/deep/*\nlatest/\n")
    unpack(packed(tmp_path, project).path, tmp_path / "out")
    assert sorted(tree(tmp_path / "out")) == [
        name, "data", "latest", "src", "src/deep", "src/train.py", "ünïcode 文",
    ]  # fmt: skip


def test_an_ignored_folder_is_not_looked_into(project, tmp_path):
    (project / "data" / "away").symlink_to("/etc")
    (project / ".mportalignore").write_text("data\n")
    assert packed(tmp_path, project).file_count == 6


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "src/../../outside", "src/../run.sh"]
)
def test_a_link_that_leaves_or_may_leave_is_named(project, tmp_path, target):
    (project / "way-out").symlink_to(target)
    with pytest.raises(ArchiveError, match="way-out"):
        packed(tmp_path, project)


def test_what_cannot_travel_is_named(project, tmp_path, monkeypatch):
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("plug")
        with pytest.raises(ArchiveError, match="plug is a socket"):
            packed(tmp_path, project)


def test_a_failed_packing_leaves_nothing_behind(project, tmp_path):
    (project / "way-out").symlink_to("/etc")
    with pytest.raises(ArchiveError):
        packed(tmp_path, project)
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


def test_a_folder_beyond_the_limits_is_refused_before_it_is_sent(project, tmp_path):
    with pytest.raises(ArchiveTooLargeError, match="mportalignore"):
        packed(tmp_path, project, limits=Limits(most_bytes=10))
    with pytest.raises(ArchiveTooLargeError, match="mportalignore"):
        packed(tmp_path, project, limits=Limits(most_members=3))


def test_only_a_folder_can_be_packed(project, tmp_path):
    with pytest.raises(ArchiveError, match="not a folder"):
        packed(tmp_path, project / "run.sh")


def test_owners_and_times_stay_at_home(project, tmp_path):
    with tarfile.open(packed(tmp_path, project).path) as tar:
        facts = {(info.uid, info.gid, info.mtime, info.uname) for info in tar}
    assert facts == {(0, 0, 0, "")}
