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
from monarch_client.runner.code.own_files import OwnFiles, keep_beside, rename_beside
from monarch_client.runner.code.recording import Recording
from monarch_client.runner.code.store import DRAFT, Store
from monarch_client.runner.code.trees import Trees
from monarch_client.runner.code.usage import folders_in_use

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable

    from monarch_client.runner.code.manifest import File

# Blocks that no generation uses, for a laptop that goes back and forth between versions.
_MOST_UNUSED_BYTES = 256 * 1024**2


class GivenUpError(Exception):
    """The early end of work that can be done later, or is not needed any more."""


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
        self._recording = Recording(self.store)
        # Set while a switch waits for the thread.
        self.hurry = threading.Event()
        # Nearly equal to the current tree: the next generation is made of it.
        self._spare = folder / "spare"
        # The work directory that `setup` had, while it becomes a generation.
        self._adopted = folder / "adopted"
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

    @property
    def progress(self) -> tuple[int, int]:
        """Return counts that change while blocks arrive and a generation is made of them."""
        return self.store.size_bytes, self._contents.moves

    def path_of(self, tree: str) -> Path:
        """Return the folder of a generation."""
        return self._generations / tree

    def record(self) -> str:
        """Return the tree of the work directory as it is now, which is an ordinary folder."""
        return self._recording.record(self._workdir)

    def adopt(self, tree: str) -> None:
        """Make the work directory, whose code was recorded as `tree`, the first generation.

        What `setup` has added since then is the program's own; what it has changed of the code
        is the code. OSError or CodeError, and the work directory is as before: `discard` is next.
        """
        if self.current is not None:
            return
        tree = self._recording.record_changes(self._workdir, tree, self.trees)
        self._own.check(self._workdir, tree)
        self.prepare(tree)
        new = self.path_of(tree)
        self._workdir.rename(self._adopted)
        moved: list[str] = []
        try:
            moved = self._own.carry(self._adopted, tree, new, is_all=True)
            self._point_to(tree)
        except BaseException:
            self._own.bring_back(self._adopted, moved, new)
            self._adopted.rename(self._workdir)
            raise
        # It has code alone. A folder of another user may remain.
        with contextlib.suppress(OSError):
            remove(self._adopted)

    def discard(self) -> None:
        """Remove all of it, unless the work directory, or a file of the program, is in it."""
        if self.current is not None or self._adopted.exists():
            return
        if any(self._own.has_any(path, path.name) for path in self._known()):
            return
        remove(self.folder)

    def prepare(self, tree: str, given_up: threading.Event | None = None) -> None:
        """Make the generation of a tree, or repair it. GivenUpError once `given_up` is set.

        BlockMissingError; FormatError: the tree breaks a rule; CodeError: a file of the program
        cannot be moved to it; OSError, such as a full disk.
        """
        self.trees.check(tree)
        current = self.current
        if current is not None and current != tree:
            self._own.check(self.path_of(current), current)
        path = self.path_of(tree)
        if path.exists():
            self._keep_changes(path)
            self._fitting(self._put_aside, given_up).fit(path, tree, keeps_others=True)
        else:
            self._make(tree, path, given_up)
        self._prepared = tree
        # The switch is a rename, for which a full disk has room.
        self._draft_link(tree)

    def _make(self, tree: str, path: Path, given_up: threading.Event | None) -> None:
        """Make a generation, of the spare folder if there is one.

        One that is given up becomes the spare folder: the next tree is much like it.
        """
        draft = self._generations / f"{DRAFT}{next(self._numbers)}"
        try:
            try:
                self._spare.rename(draft)
            except FileNotFoundError:
                draft.mkdir()
            # Each file is looked at: a program may have changed one that all generations share.
            self._fitting(remove, given_up).fit(draft, tree, keeps_others=False)
            os.utime(draft)
            draft.rename(path)
        except GivenUpError:
            draft.rename(self._spare)
            raise
        except BaseException:
            if draft.exists():
                remove(draft)
            raise

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
        if self.former is not None and self.former != self.current:
            self._keep_changes(self.path_of(self.former))
        for path in self._unused():
            self._keep_changes(path)
            self._own.save(path, self._workdir)
            if self._spare.exists():
                remove(path)
            else:
                path.rename(self._spare)
        if self.current is not None:
            self._refresh_spare(self.current)
        self._collect_blocks()

    def _refresh_spare(self, tree: str) -> None:
        self._spare.mkdir(exist_ok=True)
        # A block that a program has damaged is found by the next switch.
        with contextlib.suppress(BlockMissingError, GivenUpError):
            self._fitting(remove, self.hurry).fit(self._spare, tree, keeps_others=False)

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
        self, discard: Callable[[Path], None], given_up: threading.Event | None = None
    ) -> Fitting:
        def check_pace() -> None:
            self._contents.moves += 1
            if given_up is not None and given_up.is_set():
                raise GivenUpError

        return Fitting(self.trees, self._contents, self.folder, discard, check_pace)

    def _put_aside(self, path: Path) -> None:
        """Move what a program has put in the way of its code."""
        rename_beside(path, self._left / path.name)

    def _keep_changes(self, generation: Path) -> None:
        """Keep what a program has written into files of the code, which is replaced."""
        for path in self._fitting(remove).changed_files(generation, generation.name):
            keep_beside(generation / path, self._left / path)

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
