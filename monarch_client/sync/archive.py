"""Folders as archives that are named by their content: pack, check, unpack.

A tar.gz of relative names, plain files, folders, and links that stay inside. What others send is
checked before anything is kept; `unpack` trusts nothing either.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from monarch_client.errors import ArchiveError
from monarch_client.sync.archive_reading import Member, members, raised_as_archive_error
from monarch_client.sync.archive_rules import DEFAULT_LIMITS, Kind, Limits
from monarch_client.sync.packing import Packed, pack

__all__ = ["DEFAULT_LIMITS", "ArchiveFacts", "Limits", "Packed", "check", "pack", "unpack"]

_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """The facts about a checked archive. `digest` is the SHA-256 of the archive's own bytes."""

    digest: str
    size_bytes: int
    file_count: int
    unpacked_bytes: int


def check(source: Path | IO[bytes], limits: Limits = DEFAULT_LIMITS) -> ArchiveFacts:
    """Read an archive through, storing nothing.

    ArchiveError: it is broken or holds what it may not. ArchiveTooLargeError: over the limits.
    """
    with _opened(source) as file:
        files = [member for member in members(file, limits) if member.kind is not Kind.FOLDER]
        file.seek(0)
        digest, size_bytes = _digest_of(file)
    return ArchiveFacts(digest, size_bytes, len(files), sum(member.size for member in files))


def unpack(source: Path | IO[bytes], target: Path, limits: Limits = DEFAULT_LIMITS) -> None:
    """Unpack into the folder `target`, made if it is not there; files there are replaced.

    Nothing is written outside of `target`, not through a link in it either. Errors are
    those of `check`; what was unpacked before one is left for the caller to remove.
    """
    target.mkdir(parents=True, exist_ok=True)
    with raised_as_archive_error(), _opened(source) as file:
        for member in members(file, limits):
            _place(member, target)


def _place(member: Member, target: Path) -> None:
    path = target / member.path
    folder = member.path if member.kind is Kind.FOLDER else os.path.dirname(member.path)  # noqa: PTH120
    _make_folders(target, folder)
    if member.kind is Kind.FOLDER:
        return
    _clear(path)
    if member.kind is Kind.LINK:
        path.symlink_to(member.link_target)
    elif member.content is not None:
        _write(path, member.content, 0o755 if member.is_executable else 0o644)


def _make_folders(target: Path, relative: str) -> None:
    path = target
    for part in filter(None, relative.split("/")):
        path /= part
        if not path.is_dir() or path.is_symlink():
            _clear(path)
            path.mkdir(mode=0o755)


def _clear(path: Path) -> None:
    """Make room for a member: an old file or link goes, an old folder is in the way."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise ArchiveError(f"{path.name} would replace a folder that is already there.")
    path.unlink()


def _write(path: Path, content: IO[bytes], mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        shutil.copyfileobj(content, file, _CHUNK_BYTES)


@contextmanager
def _opened(source: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    if not isinstance(source, Path):
        source.seek(0)
        yield source
        return
    with source.open("rb") as file:
        yield file


def _digest_of(file: IO[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
