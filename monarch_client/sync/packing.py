"""A folder into a tar.gz that depends on its content alone: the same folder travels once."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from monarch_client.errors import ArchiveError
from monarch_client.sync.archive_rules import (
    DEFAULT_LIMITS,
    Contents,
    Kind,
    Limits,
    check_link,
    clean_path,
)
from monarch_client.sync.ignore import Ignore

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
        """How a specification names it once it is uploaded."""
        return f"upload:{self.digest}"


def pack(folder: Path, target: Path, limits: Limits = DEFAULT_LIMITS) -> Packed:
    """Write the content of `folder` to the archive `target`, replacing it.

    Names are sorted; times, owners and modes other than "executable" are left out. ArchiveError
    names what cannot travel: a link that leads out, a socket, a file that cannot be read.
    """
    if not folder.is_dir():
        raise ArchiveError(f"{folder} is not a folder.")
    draft = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            count = _write(folder, file, limits)
        packed = Packed(target, _digest_of(draft), draft.stat().st_size, count)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return packed


def _write(folder: Path, file: IO[bytes], limits: Limits) -> int:
    """Write the archive; the number of files and links in it."""
    contents, count = Contents(limits), 0
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, entry in _walk(folder, "", Ignore.of(folder)):
            try:
                info = _info(path, entry, contents)
                _add(tar, info, entry)
            except OSError as error:
                raise ArchiveError(
                    f"{path} cannot be read, or changed meanwhile: {error}."
                ) from error
            count += not info.isdir()
    return count


def _walk(folder: Path, below: str, ignore: Ignore) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        path = f"{below}{entry.name}"
        is_folder = entry.is_dir(follow_symlinks=False)
        if ignore.matches(path, is_folder=is_folder):
            continue
        yield path, entry
        if is_folder:
            yield from _walk(folder / entry.name, f"{path}/", ignore)


def _info(path: str, entry: os.DirEntry[str], contents: Contents) -> tarfile.TarInfo:
    status = entry.stat(follow_symlinks=False)
    info = tarfile.TarInfo(clean_path(path))
    if stat.S_ISDIR(status.st_mode):
        info.type, info.mode, kind = tarfile.DIRTYPE, 0o755, Kind.FOLDER
    elif stat.S_ISLNK(status.st_mode):
        info.type, info.mode, kind = tarfile.SYMTYPE, 0o777, Kind.LINK
        info.linkname = os.readlink(entry.path)  # noqa: PTH115 - Path would tidy the text
        check_link(path, info.linkname)
    elif stat.S_ISREG(status.st_mode):
        info.size, kind = status.st_size, Kind.FILE
        info.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    else:
        raise ArchiveError(f"{path} is a socket, pipe or device; name it in .mportalignore.")
    contents.add(info.name, kind, info.size)
    return info


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, entry: os.DirEntry[str]) -> None:
    if not info.isreg():
        tar.addfile(info)
        return
    with Path(entry.path).open("rb") as file:
        tar.addfile(info, file)


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
