"""Packing a folder: what travels, what stays, and always the same bytes."""

from __future__ import annotations

import os
import socket
import tarfile
from itertools import count

import pytest

from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.sync.archive import Limits, check, unpack
from monarch_client.sync.selection import select
from tests.each_case import check_each
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


def files_of(folder, **files: str | bytes) -> set[str]:
    """Return what is packed of a folder with these ignore files, and with files of all sorts."""
    every = {
        "a.key", "keys/b.key", "keys/public.key", ".env", "app/.env", "build/out.bin", "data/x", "é"
    }  # fmt: skip
    for name in every:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    entries = select(folder, Limits()).files
    return {entry.path for entry in entries} & every


def test_secrets_stay_behind_however_the_lines_that_name_them_are_written(tmp_path):
    left = {"keys/public.key", "build/out.bin", "data/x", "é"}

    def check(content):
        for name in ("_mportalignore", "_gitignore"):
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            assert files_of(folder, **{name: content}) == left

    numbers = count()
    check_each(
        [
            "**/.env\n**/*.key\n!public.key\n",
            ".env\n*.key\n!keys/public.key",
            "\N{BYTE ORDER MARK}.env\n*.key\n!public.key\n",
            ".env  \r\n*.key\r\n!public.key\r\n",
            "# café\n.env\n*.[k]ey\n!keys/p*\n".encode("latin-1"),
        ],
        check,
    )


def test_the_rules_of_git_hold_below_and_outside_of_a_repository(tmp_path):
    kept = files_of(tmp_path, _gitignore="*.key\n.env\n", keys___gitignore="!public.key\n")
    assert kept == {"keys/public.key", "build/out.bin", "data/x", "é"}


def test_a_skyignore_replaces_what_git_says_as_in_skypilot(tmp_path):
    kept = files_of(tmp_path, _gitignore="*\n", _skyignore="*.key\n/build\n")
    assert kept == {".env", "app/.env", "data/x", "é"}


def test_a_mportalignore_is_added_and_has_the_last_word(tmp_path):
    kept = files_of(tmp_path, _gitignore="*.key\nbuild/\n", _mportalignore="!build/\n.env\n")
    assert kept == {"build/out.bin", "data/x", "é"}
    kept = files_of(tmp_path, _skyignore="*.key\nbuild/\n", _mportalignore="!b.key\ndata\n")
    assert kept == {"keys/b.key", ".env", "app/.env", "é"}


def test_what_always_stays_is_taken_back_by_its_name_alone(project, tmp_path):
    (project / ".mportalignore").write_text("!*\n!*/\n")
    assert ".git/HEAD" not in {entry.path for entry in select(project, Limits()).entries}
    (project / ".mportalignore").write_text("!.git/\n")
    assert ".git/HEAD" in {entry.path for entry in select(project, Limits()).entries}


def test_a_virtual_environment_stays_behind_whatever_its_name(project, tmp_path):
    for name, mark in (("venv", "pyvenv.cfg"), ("src/my env", "conda-meta/history")):
        (project / name / "bin").mkdir(parents=True)
        (project / name / mark).parent.mkdir(exist_ok=True)
        (project / name / mark).write_text("")
        (project / name / "bin" / "python").symlink_to("/usr/bin/python3")
    left_out = {each.path: each.rule for each in select(project, Limits()).left_out}
    assert left_out["venv"] == left_out["src/my env"] == "always: virtual environments"
    assert packed(tmp_path, project).file_count == 6


def test_an_own_ignore_file_that_is_not_utf8_is_refused_with_its_line(project, tmp_path):
    def check(name, content, line):
        (project / name).write_bytes(content)
        with pytest.raises(ArchiveError, match=f"Line {line} of {name} is not UTF-8"):
            packed(tmp_path, project)
        (project / name).unlink()

    check_each(
        [
            (".mportalignore", b"*.bin\ndonn\xe9es/\n", 2),
            (".skyignore", b"*.bin\ndonn\xe9es/\n", 2),
            (".mportalignore", "*.key\n".encode("utf-16"), 1),
        ],
        check,
    )


@pytest.mark.parametrize("line", ["../secret", "/a/../secret", ".."])
def test_a_skyignore_with_a_path_out_of_a_folder_is_refused(tmp_path, line):
    (tmp_path / ".skyignore").write_text(f"a\n{line}\n")
    with pytest.raises(ArchiveError, match=r"\.skyignore:2 has a path with '\.\.'"):
        select(tmp_path, Limits())


def test_every_file_left_out_is_named_with_its_rule(project):
    (project / ".mportalignore").write_text("# large\n*.bin\n")
    assert {each.path: each.rule for each in select(project, Limits()).left_out} == {
        ".git": "always: .git",
        "data/1.bin": ".mportalignore:2: *.bin",
        "src/__pycache__": "always: __pycache__",
    }


def test_all_that_cannot_travel_is_named_with_what_to_do(project, tmp_path):
    (project / "way-out").symlink_to("/etc")
    (project / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    with pytest.raises(ArchiveError) as caught:
        packed(tmp_path, project)
    name, link = str(caught.value).splitlines()
    assert name == (
        r"The name 'caf\xe9.txt' is not UTF-8. Rename it. "
        "Or leave it out: add /caf?.txt to .mportalignore."
    )
    assert link.startswith("The link way-out leads to /etc, which is or may be outside")
    (project / ".mportalignore").write_text("/caf?.txt\n/way-out\n")
    packed(tmp_path, project)


def test_the_folder_that_breaks_a_limit_is_named_before_anything_is_packed(project, tmp_path):
    (project / "data" / "raw").mkdir()
    for number in range(9):
        (project / "data" / "raw" / str(number)).write_text("x" * 1000)
    unreadable = project / "data" / "raw" / "0"
    unreadable.unlink()
    os.mkfifo(unreadable)  # packing would wait for it
    with pytest.raises(ArchiveTooLargeError, match=r"so far: data/raw \(\d; "):
        packed(tmp_path, project, limits=Limits(most_members=7))
    with pytest.raises(ArchiveTooLargeError, match=r"so far: data/raw \(\d; "):
        packed(tmp_path, project, limits=Limits(most_bytes=4000))


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
