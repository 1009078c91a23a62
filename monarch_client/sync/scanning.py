"""Scan a folder: its files as blocks and manifests, of which unchanged ones are not read again."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from monarch_client.errors import ArchiveError
from monarch_client.runner.code import manifest
from monarch_client.runner.code.errors import FormatError
from monarch_client.runner.code.manifest import BLOCK_BYTES, digest_of
from monarch_client.runner.vocabulary.limits import MAX_CODE_BYTES, MAX_CODE_ENTRIES
from monarch_client.sync.archive_rules import Kind, Limits
from monarch_client.sync.selection import Entry, Stamp, name_for_people, pattern_for, select
from monarch_client.sync.stat_cache import KnownFile, StatCache

LIMITS = Limits(MAX_CODE_ENTRIES, MAX_CODE_BYTES)
_TRIES = 5


class ChangedMeanwhileError(ArchiveError):
    """A file that is no longer what the scan has found. Scan again."""


@dataclass(frozen=True)
class Snapshot:
    """A folder as a scan has found it. `tree` names its whole content."""

    folder: Path
    tree: str
    # Manifests by digest, files by path.
    manifests: dict[str, bytes] = field(repr=False)
    files: dict[str, manifest.File | manifest.Link] = field(repr=False)

    def locate(self, path: str) -> tuple[Path, str]:
        """Return the folder of this machine that a file is in, and its path there."""
        return self.folder, path

    @property
    def size_bytes(self) -> int:
        """Return the total size of the files."""
        found = self.files.values()
        return sum(each.size for each in found if isinstance(each, manifest.File))

    def changes_since(self, former: Snapshot | None) -> list[str]:
        """Return the paths of files that are new, gone or different, sorted; all without one."""
        if former is None:
            return sorted(self.files)
        both = self.files.keys() | former.files.keys()
        return sorted(path for path in both if self.files.get(path) != former.files.get(path))


class _EncodedFolder(NamedTuple):
    """A folder as the last scan has found it, with its manifest."""

    entries: manifest.Entries
    digest: str
    content: bytes


class Scanner:
    """A scanner of one folder, which remembers what it has read."""

    def __init__(self, folder: Path, cache: StatCache | None = None) -> None:
        self.folder = folder.resolve()
        self._cache = StatCache.of(self.folder) if cache is None else cache
        self._folders: dict[str, _EncodedFolder] = {}
        # Called with the size of each file that is read.
        self.on_read: Callable[[int], None] = lambda _size: None

    def scan(self) -> Snapshot:
        """Return the folder's content. ArchiveError: what in it cannot travel, or keeps changing.

        A file that changes while it is read is read again.
        """
        for tries in itertools.count(1):
            try:
                return self._scan()
            except ChangedMeanwhileError as error:  # noqa: PERF203 - few tries
                if tries == _TRIES:
                    raise ArchiveError(
                        f"{error.message} It does so again and again: leave it out, or try later."
                    ) from error
        raise AssertionError  # the loop ends by itself only

    def _scan(self) -> Snapshot:
        entries = select(self.folder, LIMITS).entries
        known: dict[str, KnownFile] = {}
        files: dict[str, manifest.File | manifest.Link] = {}
        for entry in entries:
            if entry.kind is Kind.LINK:
                files[entry.path] = manifest.Link(entry.link_target)
            elif entry.kind is Kind.FILE:
                known[entry.path] = found = self._known(entry)
                size = found.stamp.size
                files[entry.path] = manifest.File(size, found.blocks, entry.is_executable)
        folders = (entry.path for entry in entries if entry.kind is Kind.FOLDER)
        tree, manifests = self._manifests(folders, files)
        if self._cache.replace(known, set(manifests)):
            self._cache.save(self.folder)
        return Snapshot(self.folder, tree, manifests, files)

    def _known(self, entry: Entry) -> KnownFile:
        """Return the blocks of a file, which is read unless it is as it was."""
        known = self._cache.find(entry.path, entry.stamp)
        if known is not None:
            return known
        with _opened(self.folder, entry.path) as file:
            before = Stamp.of(os.fstat(file.fileno()))
            blocks = tuple(
                digest_of(content) for content in iter(lambda: file.read(BLOCK_BYTES), b"")
            )
            after = Stamp.of(os.fstat(file.fileno()))
        if before != after or len(blocks) != manifest.count_blocks(after.size):
            raise _changed(entry.path)
        self.on_read(after.size)
        return KnownFile(after, blocks)

    def _manifests(
        self, folders: Iterable[str], files: dict[str, manifest.File | manifest.Link]
    ) -> tuple[str, dict[str, bytes]]:
        """Return the name of the tree, and the manifests of its folders by digest."""
        inside: dict[str, manifest.Entries] = {"": {}, **{path: {} for path in folders}}
        for path, each in files.items():
            above, _, name = path.rpartition("/")
            inside[above][name] = each
        former, self._folders = self._folders, {}
        found: dict[str, bytes] = {}
        # The deepest first: a folder is an entry of the one above.
        for folder in sorted(inside, key=_depth, reverse=True):
            entries = inside[folder]
            known = former.get(folder)
            if known is None or known.entries != entries:
                known = self._encoded(folder, entries)
            self._folders[folder] = known
            found[known.digest] = known.content
            if folder:
                above, _, name = folder.rpartition("/")
                inside[above][name] = manifest.Folder(known.digest)
        return self._folders[""].digest, found

    def _encoded(self, folder: str, entries: manifest.Entries) -> _EncodedFolder:
        content = manifest.encode(entries)
        digest = digest_of(content)
        if digest not in self._cache.manifests:
            _check(folder, content)
        return _EncodedFolder(entries, digest, content)


class BlockReader:
    """The blocks of a snapshot, read from its folder when they are needed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._places: dict[str, tuple[str, int]] = {}
        for path, each in snapshot.files.items():
            if isinstance(each, manifest.File):
                for number, digest in enumerate(each.blocks):
                    self._places[digest] = (path, number * BLOCK_BYTES)

    def describe(self, digest: str) -> tuple[str, int]:
        """Return the file that a block is of, "" for a manifest, and its size. KeyError."""
        content = self._snapshot.manifests.get(digest)
        if content is not None:
            return "", len(content)
        path, offset = self._places[digest]
        file = self._snapshot.files[path]
        size = file.size if isinstance(file, manifest.File) else 0
        return path, min(BLOCK_BYTES, size - offset)

    def read(self, digest: str) -> bytes:
        """Return a block. ChangedMeanwhileError: its file has changed since the scan. KeyError."""
        content = self._snapshot.manifests.get(digest)
        if content is not None:
            return content
        path, offset = self._places[digest]
        with _opened(*self._snapshot.locate(path)) as file:
            file.seek(offset)
            content = file.read(BLOCK_BYTES)
        if digest_of(content) != digest:
            raise _changed(path)
        return content


def _depth(folder: str) -> int:
    return folder.count("/") + bool(folder)


def _check(folder: str, content: bytes) -> None:
    """Check a manifest as a node does. ArchiveError names the folder."""
    try:
        manifest.parse(content)
    except FormatError as error:
        shown = name_for_people(folder) if folder else "the top folder"
        raise ArchiveError(
            f"In {shown}: {error}. Move some of its files to other folders, or leave files out "
            "with .mportalignore."
        ) from error


def _opened(folder: Path, path: str) -> IO[bytes]:
    """Open a file of the folder. ChangedMeanwhileError: it is none any more. ArchiveError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(folder / path, flags)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _changed(path) from error
    except OSError as error:
        raise ArchiveError(
            f"{name_for_people(path)} cannot be read: {error.strerror}. Or leave it out: "
            f"{pattern_for(path)}"
        ) from error
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise _changed(path)
    return file


def _changed(path: str) -> ChangedMeanwhileError:
    return ChangedMeanwhileError(f"{name_for_people(path)} changes while it is read.")
