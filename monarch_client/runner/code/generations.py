"""Generations of a job's code: whole folders, one of which is the program's work directory.

A generation is made beside the current one. The work directory is a symbolic link, so a program
sees the old code or the new one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from typing import TYPE_CHECKING

from monarch_client.runner.code.content import Contents
from monarch_client.runner.code.errors import BlockMissingError, CodeError
from monarch_client.runner.code.folders import Fitting, remove
from monarch_client.runner.code.manifest import is_digest
from monarch_client.runner.code.own_files import OwnFiles, rename_beside
from monarch_client.runner.code.recording import record
from monarch_client.runner.code.store import DRAFT, Store
from monarch_client.runner.code.trees import Trees
from monarch_client.runner.code.usage import folders_in_use

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable

    from monarch_client.runner.code.manifest import File

# Blocks that no generation uses, for a laptop that goes back and forth between versions.
_MOST_UNUSED_BYTES = 256 * 1024**2


class _HurryError(Exception):
    """The end of work that can be done later."""


class Generations:
    """The generations of one node, below `folder`; `workdir` leads to the current one.

    Its methods block, and are called by one thread at a time.
    """

    def __init__(self, folder: Path, workdir: Path) -> None:
        self.folder = folder
        self._workdir = workdir
        self._generations = folder / "gen"
        self._numbers = itertools.count()
        self._generations.mkdir(parents=True, exist_ok=True)
        self.store = Store(folder / "blocks")
        self.trees = Trees(self.store)
        # Set while a switch waits for the thread.
        self.hurry = threading.Event()
        # Equal to a tree, if that is known: the next generation is made of it.
        self._spare = folder / "spare"
        self._spare_tree: str | None = None
        self._prepared: str | None = None
        self._left = folder / "left"
        self._contents = Contents(folder / "files", self.store)
        self._own = OwnFiles(self._generations, workdir, self._left, self.trees)
        for path in (*self._generations.glob(f"{DRAFT}*"), *folder.glob(f"{DRAFT}*")):
            remove(path)

    @property
    def current(self) -> str | None:
        """Return the tree that programs see; None: the work directory is an ordinary folder."""
        try:
            target = os.readlink(self._workdir)
        except OSError:
            return None
        name = target.rpartition("/")[2]
        return name if is_digest(name) else None

    @property
    def former(self) -> str | None:
        """Return the tree that was current before."""
        try:
            return (self.folder / "former").read_text()
        except OSError:
            return None

    def path_of(self, tree: str) -> Path:
        """Return the folder of a generation."""
        return self._generations / tree

    def record(self) -> str:
        """Return the tree of the work directory as it is now, which is an ordinary folder."""
        return record(self._workdir, self.store)

    def adopt(self, tree: str) -> None:
        """Make the work directory, whose code was recorded as `tree`, the first generation.

        What `setup` has added since then is the program's own. After an error it is as before.
        """
        if self.current is not None:
            return
        self.prepare(tree)
        old = self.folder / "adopted"
        self._workdir.rename(old)
        try:
            self._own.carry(old, tree, self.path_of(tree))
            self._point_to(tree)
        except BaseException:
            old.rename(self._workdir)
            raise
        remove(old)

    def prepare(self, tree: str) -> None:
        """Make the generation of a tree, or repair it.

        BlockMissingError; FormatError: the tree breaks a rule; OSError, such as a full disk.
        """
        self.trees.check(tree)
        path = self.path_of(tree)
        if path.exists():
            self._fitting(self._put_aside).fit(path, tree, keeps_others=True)
        else:
            self._make(tree, path)
        self._prepared = tree
        # The switch is a rename, for which a full disk has room.
        self._draft_link(tree)

    def _make(self, tree: str, path: Path) -> None:
        """Make a generation, of the spare folder if there is one."""
        draft = self._generations / f"{DRAFT}{next(self._numbers)}"
        fitting = self._fitting(remove)
        known, self._spare_tree = self._spare_tree, None
        try:
            if known is None or not self._is_changed(fitting, draft, known, tree):
                draft.mkdir()
                fitting.fit(draft, tree, keeps_others=False)
            os.utime(draft)
            draft.rename(path)
        except BaseException:
            if draft.exists():
                remove(draft)
            raise

    def _is_changed(self, fitting: Fitting, draft: Path, known: str, tree: str) -> bool:
        """Make a draft of the spare folder; False, and no draft, if that is not possible."""
        try:
            self._spare.rename(draft)
            fitting.change(draft, known, tree)
        except FileNotFoundError:
            if draft.exists():
                remove(draft)
            return False
        return True

    def switch(self, tree: str) -> None:
        """Make a prepared generation the current one, and take the program's own files along."""
        former, new = self.current, self.path_of(tree)
        if former == tree:
            return
        if not new.is_dir():
            raise CodeError("it is not prepared")
        moved = self._own.carry(self.path_of(former), former, new) if former else []
        self._point_to(tree)
        if former:
            self._own.settle(self.path_of(former), moved)
            # Without the note on a full disk, the former generation is the next spare one.
            with contextlib.suppress(OSError):
                (self.folder / "former").write_text(former)

    def tidy(self) -> None:
        """Remove what nothing uses any more, and make a spare folder equal to the current tree.

        The next generation is made of that, with the differences alone. When `hurry` is set, this
        ends early.
        """
        for link in self.folder.glob(f"{DRAFT}link-*"):
            if not link.name.endswith(str(self._prepared)):
                link.unlink()
        for path in self._unused():
            self._own.save(path, self._workdir)
            self._spare_tree = None
            if self._spare.exists():
                remove(path)
            else:
                path.rename(self._spare)
        if self.current is not None and self._spare_tree != self.current:
            self._refresh_spare(self.current)
        self._collect_blocks()

    def _refresh_spare(self, tree: str) -> None:
        self._spare_tree = None
        self._spare.mkdir(exist_ok=True)
        # A block that a program has damaged is found by the next switch.
        with contextlib.suppress(BlockMissingError, _HurryError):
            self._fitting(remove, self._check_pace).fit(self._spare, tree, keeps_others=False)
            self._spare_tree = tree

    def _check_pace(self) -> None:
        if self.hurry.is_set():
            raise _HurryError

    def _collect_blocks(self) -> None:
        if self.hurry.is_set():
            return
        blocks: set[str] = set()
        files: set[File] = set()
        for path in self._known():
            blocks |= self.trees.blocks(path.name)
            files |= self.trees.files(path.name)
        self._contents.collect(files)
        self.store.collect(blocks, self.store.size_of(blocks) + _MOST_UNUSED_BYTES)

    def _fitting(
        self, discard: Callable[[Path], None], check_pace: Callable[[], None] = lambda: None
    ) -> Fitting:
        return Fitting(self.trees, self._contents, self.folder, discard, check_pace)

    def _put_aside(self, path: Path) -> None:
        """Move what a program has put in the way of its code."""
        rename_beside(path, self._left / path.name)

    def _known(self) -> list[Path]:
        """Return the folders of all generations."""
        return [path for path in self._generations.iterdir() if is_digest(path.name)]

    def _unused(self) -> list[Path]:
        """Return the generations that no program uses."""
        used = {self.current, self.former, self._prepared, *folders_in_use(self._generations)}
        return [path for path in self._known() if path.name not in used]

    def _point_to(self, tree: str) -> None:
        self._draft_link(tree).replace(self._workdir)

    def _draft_link(self, tree: str) -> Path:
        """Return the link that will be the work directory."""
        draft = self.folder / f"{DRAFT}link-{tree}"
        if not draft.is_symlink():
            draft.symlink_to(os.path.relpath(self.path_of(tree), self._workdir.parent))
        return draft
