"""Archives that are meant to hurt: refused by check, and by unpack without trust in check."""

from __future__ import annotations

import io
import tarfile
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.sync.archive import Limits, check, unpack
from tests.each_case import check_each
from tests.unit.sync.archives import folder, link, member, tar_gz, tree, zipped

HOSTILE = {
    "an absolute name": [member("/etc/cron.d/x")],
    "a name that climbs": [member("a/../../x")],
    "a name that climbs back": [member("a/../x")],
    "a link to the root": [link("x", "/")],
    "a link that climbs": [link("a/x", "../../y")],
    "a link that climbs in the middle": [link("x", "a/../..")],
    "an empty link": [link("x", "")],
    "a file behind a link": [folder("a"), link("x", "a"), member("x/y")],
    "a file behind a file": [member("x"), member("x/y")],
    "a link in place of a folder": [member("x/y"), link("x", ".")],
    "a file in place of a folder": [folder("x"), member("x")],
    "a link in place of a file": [member("x"), link("x", "y")],
    "the same file twice": [member("x"), member("./x")],
    "a hard link": [member("x"), member("y", type=tarfile.LNKTYPE, linkname="x")],
    "a hard link to the host": [member("y", type=tarfile.LNKTYPE, linkname="/etc/shadow")],
    "a device": [member("x", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "a disk": [member("x", type=tarfile.BLKTYPE)],
    "a pipe": [member("x", type=tarfile.FIFOTYPE)],
    "a top that is a link": [link(".", "x")],
    "a top that is a file": [member("./")],
    "a line break in a name": [member("a\nb")],
    "an escape in a name": [member("a\x1b[2Jb")],
    "a name of bad bytes": [member("a\udcffb")],
    "a name too long for a disk": [member("x" * 256)],
    "a path too long": [member("/".join(["x" * 200] * 11))],
    "a link to an impossible name": [link("x", "a\nb")],
}


def test_hostile_members_are_refused_and_nothing_leaves_the_folder(tmp_path):
    def is_refused(name: str) -> None:
        def archive() -> io.BytesIO:
            return tar_gz(*HOSTILE[name], format=tarfile.GNU_FORMAT)

        with pytest.raises(ArchiveError):
            check(archive())
        top = tmp_path / name
        top.mkdir()
        (top / "outside").write_text("untouched")
        with pytest.raises(ArchiveError):
            unpack(archive(), top / "in")
        assert (top / "outside").read_text() == "untouched"
        assert sorted(path.name for path in top.iterdir()) == ["in", "outside"]

    check_each(HOSTILE, is_refused)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(HOSTILE)


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    return member(name, type=kind, size=size)[0].tobuf()


def one_pax_header(text: bytes) -> bytes:
    return header(b"x", len(text)) + text.ljust(512, b"\0")


BROKEN = {
    "nothing": io.BytesIO(),
    "no gzip": io.BytesIO(b"hello" * 1000),
    "no tar": zipped(b"hello" * 1000),
    "an empty gzip": zipped(b""),
    "a torn gzip": io.BytesIO(tar_gz(member("x", bytes(range(256)) * 99)).getvalue()[:-20]),
    "a wrong checksum": io.BytesIO(tar_gz(member("x", b"abc")).getvalue()[:-8] + b"\0" * 8),
    "a torn file": zipped(header(b"0", 5000) + b"x" * 512),
    "a header of a gigabyte": zipped(header(b"x", 2**30) + bytes(512)),
    "a name of a gigabyte": zipped(header(b"L", 2**30) + bytes(512)),
    "a negative size": zipped(header(b"0", -512)),
    "a chain of headers": zipped(one_pax_header(b"13 path=abcd\n") * 5000),
    "a sparse file": zipped(
        one_pax_header(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n") + header(b"0", 0)
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_archives_are_refused_in_little_memory(name, tmp_path):
    tracemalloc.start()
    with pytest.raises(ArchiveError):
        check(BROKEN[name])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * 1024**2
    with pytest.raises(ArchiveError):
        unpack(BROKEN[name], tmp_path / "in")


def test_a_bomb_is_refused_by_what_it_unpacks_to_and_not_by_what_it_says():
    limits = Limits(most_bytes=1024**2, most_members=10)
    honest = tar_gz(member("x", bytes(2 * 1024**2)))
    padded = zipped(header(b"0", 1).ljust(1024, b"\0") + bytes(8 * 1024**2))
    for bomb in (honest, padded):
        with pytest.raises(ArchiveTooLargeError):
            check(bomb, limits)


def test_folders_that_are_only_implied_count_too():
    with pytest.raises(ArchiveTooLargeError):
        check(tar_gz(member("a/b/c/d/e/f")), Limits(most_members=5))
    assert check(tar_gz(member("a/b/c/d/e/f")), Limits(most_members=6)).file_count == 1


def test_what_tar_itself_writes_is_accepted():
    members = [folder("./"), folder("./a"), member("./a/b", b"12"), link("./a/c", "../a/b")]
    for style in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        facts = check(tar_gz(*members, format=style))
        assert (facts.file_count, facts.unpacked_bytes) == (2, 2)
    long = tar_gz(member("x" * 200 + "/" + "y" * 200), format=tarfile.GNU_FORMAT)
    assert check(long).file_count == 1


def test_rights_beyond_executable_are_left_out(tmp_path):
    unpack(tar_gz(member("x", b"", mode=0o6777), member("y", b"", mode=0o000)), tmp_path)
    assert oct((tmp_path / "x").stat().st_mode & 0o7022) == "0o0"
    assert (tmp_path / "x").stat().st_mode & 0o100
    assert (tmp_path / "y").stat().st_mode & 0o600 == 0o600


def test_unpacking_replaces_files_but_writes_through_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("kept")
    target = tmp_path / "target"
    target.mkdir()
    (target / "folder").symlink_to(outside)
    (target / "file").symlink_to(outside / "keep")
    (target / "old").write_text("old")
    archive = tar_gz(member("folder/keep", b"new"), member("file", b"new"), member("old", b"new"))
    unpack(archive, target)
    assert tree(outside) == {"keep": "kept"}
    assert tree(target) == {"file": "new", "folder": "/", "folder/keep": "new", "old": "new"}


def test_a_file_never_replaces_a_folder_that_is_there(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(ArchiveError):
        unpack(tar_gz(member("x", b"1")), tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000), st.booleans())
def test_arbitrary_bytes_raise_nothing_but_archive_errors(content, is_zipped):
    try:
        check(zipped(content) if is_zipped else io.BytesIO(content))
    except ArchiveError as error:
        assert error.message


GOOD = tar_gz(folder("a"), member("a/b", b"hello" * 50), link("c", "a/b")).getvalue()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_one_changed_byte_raises_nothing_but_archive_errors(place, value):
    changed = bytearray(GOOD)
    changed[place] = value
    try:
        check(io.BytesIO(bytes(changed)))
    except ArchiveError as error:
        assert error.message
