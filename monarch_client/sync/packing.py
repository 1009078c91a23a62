"""A folder into a tar.gz that depends on its content alone: the same folder travels once."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from monarch_client.errors import ArchiveError
from monarch_client.sync.archive_rules import DEFAULT_LIMITS, Kind, Limits
from monarch_client.sync.selection import Entry, select

_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive on disk. `digest` is the SHA-256 of its bytes."""

    path: Path
    digest: str
    size_bytes: int
    file_count: int

    @property
    def reference(self) -> str:
        """The name in specifications once it is uploaded."""
        return f"upload:{self.digest}"


def pack(folder: Path, target: Path, limits: Limits = DEFAULT_LIMITS) -> Packed:
    """Write the content of `folder` to the archive `target`, replacing it.

    Errors are those of `select`, and ArchiveError for a file that cannot be read.
    """
    entries = select(folder, limits).entries
    return pack_entries([(entry, folder / entry.path) for entry in entries], target)


def pack_entries(entries: Sequence[tuple[Entry, Path]], target: Path) -> Packed:
    """Write entries, each from its own path, to the archive `target`, replacing it.

    Names are sorted; times, owners and modes other than "executable" are left out. ArchiveError: a
    file cannot be read.
    """
    draft = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            _write(entries, file)
        size = draft.stat().st_size
        file_count = sum(entry.kind is not Kind.FOLDER for entry, _ in entries)
        packed = Packed(target, _digest_of(draft), size, file_count)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return packed


def _write(entries: Iterable[tuple[Entry, Path]], file: IO[bytes]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry, path in entries:
            _add(tar, entry, path)


def _add(tar: tarfile.TarFile, entry: Entry, path: Path) -> None:
    info = tarfile.TarInfo(entry.path)
    if entry.kind is Kind.FOLDER:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    elif entry.kind is Kind.LINK:
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, entry.link_target
    else:
        info.size, info.mode = entry.size, 0o755 if entry.is_executable else 0o644
        _add_file(tar, info, path)
        return
    tar.addfile(info)


def _add_file(tar: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> None:
    try:
        with path.open("rb") as content:
            tar.addfile(info, content)
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read, or changed meanwhile: {error}.") from error


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
