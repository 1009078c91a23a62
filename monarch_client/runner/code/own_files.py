"""The program's own files: what `setup` and the program have put among the code.

They are in the current generation only. In the one before, symbolic links lead to them, for
programs that still work there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import BlockMissingError
from monarch_client.runner.code.manifest import Folder, is_digest

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

    def carry(self, former: Path, tree: str, new: Path) -> list[str]:
        """Move the program's files to a generation that becomes current; return those moved.

        `former` is a generation of `tree`. Links remain in it; `settle` is next. Where the new
        code has a file of its own, the program's stays behind.
        """
        moved = []
        for path in self._own_or_none(former, tree) or ():
            with contextlib.suppress(OSError):
                if not self._is_link(former, path) and self._move(former, new, path):
                    _link(former / path, new / path)
                    moved.append(path)
        return moved

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
            except OSError:
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
    for number in itertools.count(1):
        target = path if number == 1 else path.with_name(f"{path.name}.{number}")
        if not os.path.lexists(target):
            source.rename(target)
            return


def _link(path: Path, target: Path) -> None:
    draft = path.with_name(f".draft-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    draft.symlink_to(target)
    draft.replace(path)
