"""Reads a tar.gz from a stranger: in one pass, in little memory, whatever its headers claim."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from monarch_client.errors import ArchiveError
from monarch_client.sync.archive_rules import (
    Contents,
    Kind,
    Limits,
    check_link,
    clean_path,
    too_many_bytes,
)

_CHUNK_BYTES = 64 * 1024
# tarfile reads a long name or extended header in one go: none of ours comes near this.
_LARGEST_READ_BYTES = _CHUNK_BYTES
_MOST_GLOBAL_HEADERS = 100
# Headers and padding come on top of the content.
_OVERHEAD_PER_MEMBER = 4096


@dataclass(frozen=True, slots=True)
class Member:
    """A checked member. `content` must be read before the next member is requested."""

    path: str
    kind: Kind
    size: int = 0
    is_executable: bool = False
    link_target: str = ""
    content: IO[bytes] | None = None


def members(source: IO[bytes], limits: Limits) -> Iterator[Member]:
    """Yield the members of the tar.gz `source`, each after its check.

    ArchiveError: broken, or it holds what it may not. ArchiveTooLargeError: over the limits.
    """
    with raised_as_archive_error():
        stream = _BoundedStream(source, limits)
        # Mode "r:" asks our stream for each piece by size, so that a huge header shows itself.
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            contents = Contents(limits)
            while (info := tar.next()) is not None:
                yield _checked(tar, info, contents)
                _forget(tar)
        stream.drain()


def _forget(tar: tarfile.TarFile) -> None:
    """Drop what tarfile would keep of every member, its extended headers included."""
    tar.members.clear()  # type: ignore[attr-defined]
    if len(tar.pax_headers) > _MOST_GLOBAL_HEADERS:
        raise ArchiveError("The archive has more global headers than make sense.")


def _checked(tar: tarfile.TarFile, info: tarfile.TarInfo, contents: Contents) -> Member:
    path = clean_path(info.name)
    kind = _kind_of(info)
    if not path and kind is not Kind.FOLDER:
        raise ArchiveError("The archive's top is not a folder.")
    if path:
        contents.add(path, kind, info.size)
    if kind is Kind.LINK:
        check_link(path, info.linkname)
        return Member(path, kind, link_target=info.linkname)
    if kind is Kind.FOLDER:
        return Member(path, kind)
    return Member(path, kind, info.size, bool(info.mode & 0o100), content=tar.extractfile(info))


def _kind_of(info: tarfile.TarInfo) -> Kind:
    if info.isdir():
        return Kind.FOLDER
    if info.issym():
        return Kind.LINK
    if info.isreg() and not info.issparse():
        return Kind.FILE
    what = "a hard link" if info.islnk() else "neither a file, a folder nor a symbolic link"
    raise ArchiveError(f"{info.name[:100]!a} is {what}; pack it in another way.")


@contextlib.contextmanager
def raised_as_archive_error() -> Iterator[None]:
    """Raise the errors of tarfile and gzip about broken content as ArchiveError."""
    try:
        yield
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ArchiveError(f"This is not a whole tar.gz: {error}.") from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError("The archive's headers make no sense.") from error


class _BoundedStream(io.RawIOBase):
    """The unpacked bytes, forward only: as many as the limits allow, in pieces of bounded size."""

    def __init__(self, source: IO[bytes], limits: Limits) -> None:
        super().__init__()
        self._gzip = gzip.GzipFile(fileobj=source, mode="rb")
        self._position = 0
        self._limits = limits
        self._most = limits.most_bytes + limits.most_members * _OVERHEAD_PER_MEMBER

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _LARGEST_READ_BYTES:
            raise ArchiveError("The archive has a header of absurd size.")
        data = self._gzip.read(size)
        self._position += len(data)
        if self._position > self._most:
            raise too_many_bytes(self._limits)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence != io.SEEK_SET or offset < self._position:
            raise ArchiveError("The archive's headers make no sense.")
        while self._position < offset and self.read(min(_CHUNK_BYTES, offset - self._position)):
            pass
        return self._position

    def drain(self) -> None:
        """Read to the end, where gzip's checksum is."""
        while self.read(_CHUNK_BYTES):
            pass
