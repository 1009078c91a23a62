"""Select the files of a folder that travel, before any is packed."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.runner.vocabulary.limits import MAX_NAME_BYTES
from monarch_client.sync.archive_rules import Contents, Kind, Limits, check_link, clean_path
from monarch_client.sync.ignore import Ignore

_MOST_PROBLEMS_SHOWN = 5
_MOST_FOLDERS_SHOWN = 3
_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.FOLDER, stat.S_IFLNK: Kind.LINK}
_NOT_IN_PATTERNS = re.compile(r"[\udc80-\udcff\x00-\x1f\x7f-\x9f]")
_SPECIAL_IN_PATTERNS = re.compile(r"([*?\[\\])")


class Stamp(NamedTuple):
    """The state of a file that changes with its content."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the stamp of a file."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    @property
    def newest(self) -> int:
        """Return its latest time."""
        return max(self.modified_ns, self.changed_ns)


_NO_STAMP = Stamp(0, 0, 0, 0)


class Entry(NamedTuple):
    """A file, folder or link that travels; `path` starts at the folder that is packed."""

    path: str
    kind: Kind
    size: int = 0
    is_executable: bool = False
    link_target: str = ""
    # Of a file.
    stamp: Stamp = _NO_STAMP


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that stays behind, and the rule that excludes it."""

    path: str
    rule: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The files that travel, and those left out; a folder left out is one entry."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def files(self) -> list[Entry]:
        """Return the files and links that travel."""
        return [entry for entry in self.entries if entry.kind is not Kind.FOLDER]

    @property
    def file_count(self) -> int:
        """Return the number of files and links that travel."""
        return len(self.files)

    @property
    def size_bytes(self) -> int:
        """Return the total size of the files, unpacked."""
        return sum(entry.size for entry in self.entries)


def select(folder: Path, limits: Limits) -> Selection:
    """Walk through `folder`, sorted by name.

    ArchiveTooLargeError, as soon as a limit is passed: it names the folders to leave out.
    ArchiveError: it names what cannot travel.
    """
    if not folder.is_dir():
        raise ArchiveError(f"{folder} is not a folder.")
    walk = _Walk(folder, limits)
    walk.visit(Ignore.of(folder))
    if walk.problems:
        raise ArchiveError(_listed(walk.problems))
    return Selection(tuple(walk.entries), tuple(walk.left_out))


class _Walk:
    """A walk through a folder, with the entries found so far."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._contents = Contents(limits)
        self.entries: list[Entry] = []
        self.left_out: list[LeftOut] = []
        self.problems: list[str] = []

    def visit(self, ignore: Ignore) -> None:
        """Add the entries that travel of one folder, and of those below it."""
        for found in self._entries_of(ignore.below):
            path = ignore.below + found.name
            verdict = ignore.judge(found.name, is_folder=found.is_dir(follow_symlinks=False))
            if verdict.stays:
                self.left_out.append(LeftOut(path, verdict.rule))
                continue
            try:
                self._add(_entry(path, found))
            except ArchiveTooLargeError:
                raise
            except ArchiveError as error:
                self.problems.append(f"{error} Or leave it out: {pattern_for(path)}")
                continue
            if verdict.inside:
                self.visit(verdict.inside)

    def _entries_of(self, below: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder / below) as found:
                yield from sorted(found, key=attrgetter("name"))
        except OSError as error:
            shown = below.rstrip("/") or str(self._folder)
            self.problems.append(
                f"The folder {name_for_people(shown)} cannot be read: {error.strerror}."
            )

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        try:
            self._contents.add(entry.path, entry.kind, entry.size)
        except ArchiveTooLargeError as error:
            by_size = len(self.entries) <= self._limits.most_members
            raise ArchiveTooLargeError(f"{error} {_largest(self.entries, by_size)}") from error


def pattern_for(path: str) -> str:
    """Return the line of .mportalignore that leaves `path` out, for a message."""
    pattern = _NOT_IN_PATTERNS.sub("?", _SPECIAL_IN_PATTERNS.sub(r"\\\1", path))
    return f"add /{pattern} to .mportalignore."


def _entry(path: str, found: os.DirEntry[str]) -> Entry:
    """Return what is at `path`. ArchiveError: it cannot travel."""
    _check_name(path)
    try:
        status = found.stat(follow_symlinks=False)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        # Path would tidy the text of the link.
        target = os.readlink(found.path) if kind is Kind.LINK else ""  # noqa: PTH115
    except OSError as error:
        raise ArchiveError(f"{name_for_people(path)} cannot be read: {error.strerror}.") from error
    if kind is None:
        raise ArchiveError(f"{name_for_people(path)} is a socket, pipe or device. Remove it.")
    if kind is Kind.LINK:
        _check_target(path, target)
    is_file = kind is Kind.FILE
    size = status.st_size if is_file else 0
    is_executable = is_file and bool(status.st_mode & stat.S_IXUSR)
    return Entry(
        path, kind, size, is_executable, target, Stamp.of(status) if is_file else _NO_STAMP
    )


def _check_name(path: str) -> None:
    # Nearly all are such paths, which need no look at their parts: `scandir` has no "..".
    if len(path) <= MAX_NAME_BYTES and path.isascii() and path.isprintable():
        return
    try:
        path.encode()
        clean_path(path)
    except UnicodeEncodeError as error:
        raise ArchiveError(f"The name {name_for_people(path)} is not UTF-8. Rename it.") from error
    except ArchiveError as error:
        raise ArchiveError(f"{error} Rename it.") from error


def _check_target(path: str, target: str) -> None:
    try:
        check_link(path, target)
    except ArchiveError as error:
        raise ArchiveError(
            f"The link {name_for_people(path)} leads to {name_for_people(target)}, which is or "
            "may be outside of the folder. Replace it with what it leads to, or with a relative "
            "link that stays inside."
        ) from error


def name_for_people(text: str) -> str:
    """Return a name as it is, or its bytes where a terminal could not show them."""
    return text if text.isprintable() else repr(os.fsencode(text))[1:]


def _listed(problems: list[str]) -> str:
    """Return the problems as one message: the first few, and how many more there are."""
    more = len(problems) - _MOST_PROBLEMS_SHOWN
    shown = problems[:_MOST_PROBLEMS_SHOWN] + [f"And {more} more."] * (more > 0)
    return "\n".join(shown)


def _largest(entries: list[Entry], by_size: bool) -> str:  # noqa: FBT001
    """Name what holds most of `entries`: one path where it is more than half, or a few."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for entry in entries:
        path = entry.path
        while path:
            counts[path] += 1
            sizes[path] += entry.size
            path = path.rpartition("/")[0]
    ranked = [path for path, _ in (sizes if by_size else counts).most_common()]
    half = (sum(entry.size for entry in entries) if by_size else len(entries)) / 2
    amount = sizes if by_size else counts
    # The deepest path that holds more than half; a folder sorts before its content only by size.
    main = max((path for path in ranked if amount[path] > half), key=len, default="")
    names = [main] if main else [path for path in ranked if "/" not in path][:_MOST_FOLDERS_SHOWN]
    shown = ", ".join(f"{name} ({counts[name]:,}; {_mib(sizes[name])})" for name in names)
    return f"Most of it so far: {shown}."


def _mib(size: int) -> str:
    return f"{size / 1024**2:,.1f} MiB"
