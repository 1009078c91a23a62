"""Make a folder equal to a tree, with as few changes as possible."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import BlockMissingError
from monarch_client.runner.code.manifest import File, Folder, Link
from monarch_client.runner.code.mounts import mounts_in
from monarch_client.runner.code.store import DRAFT

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable, Iterator

    from monarch_client.runner.code.content import Contents
    from monarch_client.runner.code.manifest import Entry
    from monarch_client.runner.code.trees import Trees


class Fitting:
    """A change of folders; what is in the way, or in no tree, is passed to `discard`.

    Each file and link is replaced at once, so this may be done where programs work.
    """

    def __init__(
        self,
        trees: Trees,
        contents: Contents,
        drafts: Path,
        discard: Callable[[Path], None],
        check_pace: Callable[[], None] = lambda: None,
    ) -> None:
        self._trees = trees
        self._contents = contents
        self._drafts = drafts
        self._discard = discard
        self._numbers = itertools.count()
        # Called for each folder, and each file that is made: an exception ends the work.
        self._check_pace = check_pace
        self._missing: BlockMissingError | None = None

    def fit(self, folder: Path, tree: str, *, keeps_others: bool) -> None:
        """Make a folder equal to a tree; `keeps_others`: what the tree does not have stays.

        BlockMissingError, FormatError and OSError as those of `Contents.place`; the first one only
        after all else is done, so that all missing blocks are known.
        """
        self._fit(folder, tree, keeps_others=keeps_others)
        if self._missing is not None:
            raise self._missing

    def _fit(self, folder: Path, tree: str, *, keeps_others: bool) -> None:
        self._check_pace()
        entries = self._trees.entries(tree)
        with os.scandir(folder) as scan:
            found = {each.name: each for each in scan}
        if not keeps_others:
            for name in found.keys() - entries.keys():
                self._discard(folder / name)
        for name, entry in entries.items():
            status = _status_of(found.get(name))
            # Nearly all are such files, of which a sync has to look at each.
            if isinstance(entry, File) and status and self._contents.is_as_wanted(status, entry):
                continue
            path = folder / name
            if isinstance(entry, Folder):
                self._fit_folder(path, entry, status, keeps_others=keeps_others)
            elif not (isinstance(entry, Link) and _is_link_to(path, entry, status)):
                try:
                    self._replace(path, entry, status)
                except BlockMissingError as error:
                    self._missing = self._missing or error

    def changed_files(self, folder: Path, tree: str) -> Iterator[str]:
        """Yield the paths of the tree's files whose content a program has changed in a folder."""
        for name, entry in self._trees.entries(tree).items():
            path = folder / name
            with contextlib.suppress(OSError, BlockMissingError):
                status = path.lstat()
                if isinstance(entry, Folder):
                    if stat.S_ISDIR(status.st_mode):
                        for below in self.changed_files(path, entry.digest):
                            yield f"{name}/{below}"
                elif stat.S_ISREG(status.st_mode) and not (
                    isinstance(entry, File) and self._contents.has_content(path, status, entry)
                ):
                    yield name

    def _fit_folder(
        self, path: Path, entry: Folder, status: os.stat_result | None, *, keeps_others: bool
    ) -> None:
        if status is not None and not stat.S_ISDIR(status.st_mode):
            self._discard(path)
            status = None
        if status is None:
            path.mkdir()
        self._fit(path, entry.digest, keeps_others=keeps_others)

    def _replace(self, path: Path, entry: Entry, status: os.stat_result | None) -> None:
        self._check_pace()
        if status is None:
            self._make(path, entry)
            return
        draft = self._drafts / f"{DRAFT}{os.getpid()}-{next(self._numbers)}"
        try:
            self._make(draft, entry)
            if stat.S_ISDIR(status.st_mode):
                self._discard(path)
            draft.replace(path)
        finally:
            # Renaming one link of a file to another one of it leaves both.
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()

    def _make(self, path: Path, entry: Entry) -> None:
        if isinstance(entry, Link):
            path.symlink_to(entry.target)
        elif not isinstance(entry, Folder):
            self._contents.place(entry, path)


def _is_link_to(path: Path, entry: Link, status: os.stat_result | None) -> bool:
    is_link = status is not None and stat.S_ISLNK(status.st_mode)
    return is_link and os.readlink(path) == entry.target


def _status_of(found: os.DirEntry[str] | None) -> os.stat_result | None:
    try:
        return found.stat(follow_symlinks=False) if found else None
    except FileNotFoundError:
        return None


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it.

    OSError, and nothing is removed: a file system is mounted in it, whose files are no code.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    if mounts_in(path):
        raise OSError(errno.EBUSY, "a file system is mounted in it", str(path))
    shutil.rmtree(path)
