"""The rules for archives: their bounds, and the names and links inside them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.runner.vocabulary.limits import MAX_ARCHIVE_BYTES, MAX_ARCHIVE_MEMBERS
from monarch_client.runner.vocabulary.names import is_ordinary_name, is_ordinary_path, ups_of


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of an archive. Folders count as members, those only implied included."""

    most_members: int = MAX_ARCHIVE_MEMBERS
    most_bytes: int = MAX_ARCHIVE_BYTES


DEFAULT_LIMITS = Limits()


class Kind(Enum):
    """The kind of a member."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


def clean_path(name: str) -> str:
    """Return `name` as a relative path without "." parts, "" for the top.

    ArchiveError if the path leaves the archive's folder.
    """
    if name.startswith("/") or ".." in name.split("/"):
        raise ArchiveError(f"{_shown(name)} is outside of the archive's own folder.")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    path = "/".join(parts)
    if not (is_ordinary_path(path) and all(is_ordinary_name(part) for part in parts)):
        raise ArchiveError(f"{_shown(name)} is not a name that every node can have.")
    return path


def check_link(path: str, target: str) -> None:
    """Pass silently if the link at `path` stays inside, whatever other links it runs through.

    Going up is allowed at the beginning only: then every step starts in a real folder, and none
    can be led outside by a link on the way.
    """
    ups = ups_of(target)
    if ups is None or ups > path.count("/"):
        raise ArchiveError(f"The link {_shown(path)} leads out of the archive, or may.")
    if not is_ordinary_path(target):
        raise ArchiveError(f"The link {_shown(path)} leads to an impossible name.")


class Contents:
    """The members seen so far. Each must be new, and be in a folder rather than behind a link."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kinds: dict[str, Kind] = {"": Kind.FOLDER}
        self._bytes = 0

    def add(self, path: str, kind: Kind, size: int = 0) -> None:
        """Take up a member; ArchiveError or ArchiveTooLargeError if it cannot be there."""
        self._add_folders(path.rpartition("/")[0])
        known = self._kinds.get(path)
        if known is not None and not (known is kind is Kind.FOLDER):
            raise ArchiveError(f"{_shown(path)} is in the archive twice.")
        self._note(path, kind)
        self._bytes += size
        if self._bytes > self._limits.most_bytes:
            raise too_many_bytes(self._limits)

    def _add_folders(self, path: str) -> None:
        missing = []
        while (kind := self._kinds.get(path)) is None:
            missing.append(path)
            path = path.rpartition("/")[0]
        if kind is not Kind.FOLDER:
            raise ArchiveError(f"{_shown(path)} is a {kind.value}, yet a member is below it.")
        for folder in reversed(missing):
            self._note(folder, Kind.FOLDER)

    def _note(self, path: str, kind: Kind) -> None:
        self._kinds[path] = kind
        if len(self._kinds) - 1 > self._limits.most_members:
            raise ArchiveTooLargeError(
                f"More than {self._limits.most_members:,} files and folders; leave some out with "
                "a .mportalignore file."
            )


def too_many_bytes(limits: Limits) -> ArchiveTooLargeError:
    """Return the error for content above the bound."""
    size = f"{limits.most_bytes / 1024**2:,.0f} MiB"
    return ArchiveTooLargeError(
        f"More than {size} of content; leave data out with a .mportalignore file."
    )


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 100 else name[:99] + "…")  # noqa: PLR2004
