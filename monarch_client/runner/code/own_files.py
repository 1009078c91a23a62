"""The program's own files: what `setup` and the program have put among the code.

They are in the current generation only. In the one before, symbolic links lead to them, for
programs that still work there.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import BlockMissingError, CodeError
from monarch_client.runner.code.manifest import Folder, is_digest
from monarch_client.runner.code.mounts import mounts_in

if TYPE_CHECKING:
    from typing import Iterator

    from monarch_client.runner.code.trees import Trees

# Made by Python wherever code is: not worth a folder that the code does not have any more.
_CACHE = "__pycache__"


class OwnFiles:
    """The program's own files in the generations below a folder; `left` takes those in the way."""

    def __init__(self, generations: Path, workdir: Path, left: Path, trees: Trees) -> None:
        self._generations = generations
        self._workdir = workdir
        self._left = left
        self._trees = trees

    def check(self, folder: Path, tree: str) -> None:
        """Check that the program's files in a folder of a tree can be moved.

        CodeError: a file system is mounted there, or a folder belongs to another user.
        """
        own = [folder / path for path in self._own_or_none(folder, tree) or ()]
        movable = set(own)
        for mount in mounts_in(folder):
            # Those in a folder of the program move with it.
            if movable.isdisjoint(mount.parents):
                path = mount.relative_to(folder)
                raise CodeError(f"a file system is mounted at {path} in the work directory")
        for each in own:
            if each.name != _CACHE and not _is_movable(each):
                path = each.relative_to(folder)
                raise CodeError(f"{path} in the work directory is a folder without write access")

    def carry(self, former: Path, tree: str, new: Path, *, is_all: bool = False) -> list[str]:
        """Move the program's files to a generation that becomes current; return those moved.

        `former` is a folder of `tree`. Links remain in it; `settle` is next. Where the new code
        has a file of its own, the program's stays behind. OSError, and all is as before: one
        cannot be moved, or, with `is_all`, one would stay behind.
        """
        moved: list[str] = []
        try:
            for path in self._own_or_none(former, tree) or ():
                if self._is_link(former, path):
                    continue
                if self._try_to_move(former, new, path):
                    moved.append(path)
                    with contextlib.suppress(OSError):
                        _link(former / path, new / path)
                elif is_all and Path(path).name != _CACHE:
                    raise FileExistsError(errno.EEXIST, "it is in the way", path)
        except BaseException:
            self.bring_back(former, moved, new)
            raise
        return moved

    def bring_back(self, former: Path, moved: list[str], new: Path) -> None:
        """Undo `carry`."""
        for path in reversed(moved):
            with contextlib.suppress(OSError):
                if (former / path).is_symlink():
                    (former / path).unlink()
                (new / path).rename(former / path)

    def has_any(self, folder: Path, tree: str) -> bool:
        """Whether a folder of a tree may contain files of the program."""
        return self._own_or_none(folder, tree) != []

    def settle(self, former: Path, moved: list[str]) -> None:
        """Replace the links in a former generation by ones through the work directory."""
        for path in moved:
            with contextlib.suppress(OSError):
                _link(former / path, self._workdir / path)

    def save(self, generation: Path, current: Path) -> None:
        """Move the program's files out of a generation that is removed, without its links.

        They were made after it was current.
        """
        own = self._own_or_none(generation, generation.name)
        if own is None:
            # Its files cannot be told apart from the code.
            rename_beside(generation, self._left / generation.name)
            generation.mkdir()
            return
        for path in own:
            source = generation / path
            if self._is_link(generation, path):
                source.unlink()
            elif source.name != _CACHE and not self._move(generation, current, path):
                rename_beside(source, self._left / path)

    def _own_or_none(self, folder: Path, tree: str) -> list[str] | None:
        """Return the program's files in a generation; None if its manifests are lost."""
        try:
            return list(_own_entries(folder, self._trees, tree, ""))
        except BlockMissingError:
            return None

    def _is_link(self, generation: Path, path: str) -> bool:
        """Whether there is a link that `carry` or `settle` has left: it leads to the same path."""
        try:
            target = Path(os.readlink(generation / path))
        except OSError:
            return False
        if target == self._workdir / path:
            return True
        prefix = f"{self._generations}{os.sep}"
        tree, _, rest = str(target)[len(prefix) :].partition(os.sep)
        return str(target).startswith(prefix) and is_digest(tree) and rest == path

    def _try_to_move(self, generation: Path, other: Path, path: str) -> bool:
        try:
            return self._move(generation, other, path)
        except OSError:
            # What Python has compiled is not worth an error.
            if Path(path).name != _CACHE:
                raise
            return False

    def _move(self, generation: Path, other: Path, path: str) -> bool:
        """Move a file or folder to another generation; False if there is one of its name."""
        source, target = generation / path, other / path
        if os.path.lexists(target):
            if not self._is_link(other, path):
                return False
            target.unlink()
        if not target.parent.is_dir():
            if source.name == _CACHE:
                return False
            try:
                target.parent.mkdir(parents=True)
            except (FileExistsError, NotADirectoryError):
                return False
        source.rename(target)
        return True


def _own_entries(folder: Path, trees: Trees, tree: str, above: str) -> Iterator[str]:
    """Yield the paths that a tree does not have, without those below them."""
    entries = trees.entries(tree)
    with os.scandir(folder) as found:
        for each in found:
            entry = entries.get(each.name)
            is_folder = each.is_dir(follow_symlinks=False)
            if entry is None or isinstance(entry, Folder) is not is_folder:
                yield above + each.name
            elif isinstance(entry, Folder):
                path = folder / each.name
                yield from _own_entries(path, trees, entry.digest, f"{above}{each.name}/")


def rename_beside(source: Path, path: Path) -> None:
    """Move a file or folder to a path, or to the next free one that is named after it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source.rename(next(each for each in _names_after(path) if not os.path.lexists(each)))


def keep_beside(source: Path, path: Path) -> None:
    """Link a file to a path, or to the next free one after it, unless it is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for target in _names_after(path):
        if not os.path.lexists(target):
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)
            return
        if target.exists() and target.samefile(source):
            return


def _names_after(path: Path) -> Iterator[Path]:
    yield path
    for number in itertools.count(2):
        yield path.with_name(f"{path.name}.{number}")


def _is_movable(path: Path) -> bool:
    """Whether a path can be renamed: the kernel changes what is in a folder that moves."""
    return not stat.S_ISDIR(path.lstat().st_mode) or os.access(
        path, os.W_OK, effective_ids=os.access in os.supports_effective_ids
    )


def _link(path: Path, target: Path) -> None:
    draft = path.with_name(f".draft-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    draft.symlink_to(target)
    draft.replace(path)
