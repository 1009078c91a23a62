"""Make a folder equal to a tree, with as few changes as possible."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
from typing import TYPE_CHECKING

from monarch_client.runner.code.manifest import Folder, Link
from monarch_client.runner.code.store import DRAFT

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable

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
        # Called for each folder: an exception ends the work.
        self._check_pace = check_pace

    def fit(self, folder: Path, tree: str, *, keeps_others: bool) -> None:
        """Make a folder equal to a tree; `keeps_others`: what the tree does not have stays.

        BlockMissingError, FormatError and OSError as those of `Contents.place`.
        """
        self._check_pace()
        entries = self._trees.entries(tree)
        with os.scandir(folder) as scan:
            found = {each.name: each for each in scan}
        if not keeps_others:
            for name in found.keys() - entries.keys():
                self._discard(folder / name)
        for name, entry in entries.items():
            status = None
            if name in found:
                with contextlib.suppress(FileNotFoundError):
                    status = found[name].stat(follow_symlinks=False)
            path = folder / name
            if isinstance(entry, Folder):
                self._fit_folder(path, entry, status, keeps_others=keeps_others)
            elif status is None or not self._is_as_wanted(path, entry, status):
                self._replace(path, entry, status)

    def change(self, folder: Path, former: str, tree: str) -> None:
        """Make a folder that is equal to a former tree equal to another one."""
        before, entries = self._trees.entries(former), self._trees.entries(tree)
        for name in before.keys() - entries.keys():
            self._discard(folder / name)
        for name, entry in entries.items():
            old, path = before.get(name), folder / name
            # Tuples of different kinds may be equal.
            if type(old) is type(entry) and old == entry:
                continue
            if isinstance(entry, Folder) and isinstance(old, Folder):
                self.change(path, old.digest, entry.digest)
                continue
            status = path.lstat() if old is not None else None
            if isinstance(entry, Folder):
                self._fit_folder(path, entry, status, keeps_others=False)
            else:
                self._replace(path, entry, status)

    def _fit_folder(
        self, path: Path, entry: Folder, status: os.stat_result | None, *, keeps_others: bool
    ) -> None:
        if status is not None and not stat.S_ISDIR(status.st_mode):
            self._discard(path)
            status = None
        if status is None:
            path.mkdir()
        self.fit(path, entry.digest, keeps_others=keeps_others)

    def _is_as_wanted(self, path: Path, entry: Entry, status: os.stat_result) -> bool:
        if isinstance(entry, Link):
            is_link = stat.S_ISLNK(status.st_mode)
            return is_link and os.readlink(path) == entry.target
        return not isinstance(entry, Folder) and self._contents.is_as_wanted(status, entry)

    def _replace(self, path: Path, entry: Entry, status: os.stat_result | None) -> None:
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


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    shutil.rmtree(path)
