"""Trees of manifests: which blocks they need, and whether they keep the limits as a whole."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.code.errors import FormatError
from monarch_client.runner.code.manifest import File, Folder, Link, parse
from monarch_client.runner.vocabulary.limits import (
    MAX_CODE_BYTES,
    MAX_CODE_DEPTH,
    MAX_CODE_ENTRIES,
    MAX_PATH_BYTES,
)
from monarch_client.runner.vocabulary.names import ups_of

if TYPE_CHECKING:
    from typing import Container, Iterable, Iterator

    from monarch_client.runner.code.manifest import Entries
    from monarch_client.runner.code.store import Store

_MOST_MANIFESTS = 20_000


class Summary(NamedTuple):
    """The sums over a folder and those below it, which depend on its content alone."""

    entries: int = 0
    size_bytes: int = 0
    depth: int = 0
    # Bytes of the longest path below it.
    longest: int = 0
    # The folders above this one into which its links lead: none for the top of a tree.
    climb: int = 0


class Trees:
    """The trees of which a store has the manifests. Each manifest is parsed once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parsed: collections.OrderedDict[str, Entries] = collections.OrderedDict()
        self._summaries: dict[str, Summary] = {}
        # Folders of which the store had everything, when it had lost so many blocks.
        self._complete: set[str] = set()
        self._losses = 0

    def entries(self, folder: str) -> Entries:
        """Return what is in a folder. BlockMissingError; FormatError: it is no manifest."""
        known = self._parsed.get(folder)
        if known is not None:
            return known
        entries = parse(self._store.read(folder))
        self._parsed[folder] = entries
        if len(self._parsed) > _MOST_MANIFESTS:
            self._parsed.popitem(last=False)
        return entries

    def missing_folders(self, tree: str) -> list[str]:
        """Return the folders of which the store lacks the manifest.

        Those below them are not known before these are here.
        """
        folders = self.folders(tree, self._known_complete())
        return [folder for folder in folders if not self._store.has(folder)]

    def missing_blocks(self, tree: str) -> list[str]:
        """Return the blocks of files that the store lacks; all manifests must be here."""
        self.check(tree)
        folders = list(self.folders(tree, self._known_complete()))
        missing = self._store.missing(self._blocks(folders))
        if not missing:
            self._complete.update(folders)
        return missing

    def blocks(self, tree: str) -> set[str]:
        """Return the names of all blocks of a tree, manifests included."""
        folders = list(self.folders(tree))
        return {*self._blocks(folders), *folders}

    def files(self, tree: str) -> set[File]:
        """Return the different files of a tree."""
        found: set[File] = set()
        for folder in self.folders(tree):
            found.update(each for each in self.entries(folder).values() if isinstance(each, File))
        return found

    def folders(self, tree: str, without: Container[str] = ()) -> Iterator[str]:
        """Yield each different folder of a tree once; below a missing one none.

        Those in `without` and below them are left out.
        """
        seen = {tree}
        waiting = [] if tree in without else [tree]
        while waiting:
            folder = waiting.pop()
            yield folder
            if not self._store.has(folder):
                continue
            for entry in self.entries(folder).values():
                if not isinstance(entry, Folder) or entry.digest in without:
                    continue
                if entry.digest not in seen:
                    seen.add(entry.digest)
                    if len(seen) > MAX_CODE_ENTRIES:
                        raise _too_many()
                    waiting.append(entry.digest)

    def check(self, tree: str) -> Summary:
        """Return the sums of a tree. FormatError: it passes a limit, or a link leads out of it.

        BlockMissingError: a manifest is missing.
        """
        summary = self._summary(tree, 0)
        if summary.climb > 0:
            raise FormatError("a link leads out of the code")
        if summary.longest > MAX_PATH_BYTES:
            raise FormatError(f"a path is longer than {MAX_PATH_BYTES:,} bytes")
        if summary.entries > MAX_CODE_ENTRIES:
            raise _too_many()
        if summary.size_bytes > MAX_CODE_BYTES:
            raise FormatError(f"more than {MAX_CODE_BYTES // 1024**3:,} GiB of files")
        return summary

    def _known_complete(self) -> set[str]:
        if self._losses != self._store.losses or len(self._complete) > _MOST_MANIFESTS:
            self._losses = self._store.losses
            self._complete.clear()
        return self._complete

    def _blocks(self, folders: Iterable[str]) -> Iterator[str]:
        for folder in folders:
            for entry in self.entries(folder).values():
                if isinstance(entry, File):
                    yield from entry.blocks

    def _summary(self, folder: str, above: int) -> Summary:
        if above > MAX_CODE_DEPTH:
            raise FormatError(f"folders are more than {MAX_CODE_DEPTH} deep")
        known = self._summaries.get(folder)
        # A folder may have been found higher up before.
        if known is None:
            known = self._sum(folder, above)
            self._summaries[folder] = known
        elif above + known.depth > MAX_CODE_DEPTH:
            raise FormatError(f"folders are more than {MAX_CODE_DEPTH} deep")
        if len(self._summaries) > 2 * _MOST_MANIFESTS and above == 0:
            self._summaries.clear()
        return known

    def _sum(self, folder: str, above: int) -> Summary:
        entries = size = depth = longest = climb = 0
        for name, entry in self.entries(folder).items():
            entries += 1
            length = len(name.encode())
            if isinstance(entry, File):
                size += entry.size
            elif isinstance(entry, Link):
                climb = max(climb, ups_of(entry.target) or 0)
            else:
                below = self._summary(entry.digest, above + 1)
                entries += below.entries
                size += below.size_bytes
                depth = max(depth, below.depth + 1)
                climb = max(climb, below.climb - 1)
                length += 1 + below.longest
            longest = max(longest, length)
        return Summary(entries, size, depth, longest, climb)


def _too_many() -> FormatError:
    return FormatError(f"more than {MAX_CODE_ENTRIES:,} files and folders")
