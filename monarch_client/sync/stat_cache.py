"""The files that earlier scans of a folder have read, so that only changed ones are read again.

A file counts as unchanged while its size, times and inode are the same. A file that changed just
before it was read may change again without any of them, so it is read at the next scan as well.
"""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import platformdirs

from monarch_client.sync.selection import Stamp

log = logging.getLogger(__name__)

_VERSION = 1
# The coarsest times of file systems that people work on.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was read: its state then, and its blocks."""

    stamp: Stamp
    blocks: tuple[str, ...]


@dataclass
class StatCache:
    """The files of one folder by path, and the manifests that were checked."""

    path: Path | None = None
    files: dict[str, KnownFile] = field(default_factory=dict)
    manifests: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, folder: Path) -> StatCache:
        """Return the cache of a folder; an empty one if there is none that can be used."""
        name = sha256(os.fsencode(folder)).hexdigest()[:24]
        path = platformdirs.user_cache_path("mportal") / "sync" / f"{name}.json"
        cache = cls(path)
        try:
            found = json.loads(path.read_bytes())
            if found["version"] == _VERSION and found["folder"] == str(folder):
                cache.files = {
                    name: KnownFile(Stamp(*stamp), tuple(blocks))
                    for name, (stamp, blocks) in found["files"].items()
                }
                cache.manifests = set(found["manifests"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            log.debug("The cache %s cannot be used: %r", path, error)
        return cache

    def find(self, path: str, stamp: Stamp) -> KnownFile | None:
        """Return a file that has not changed since it was read; None if it has."""
        known = self.files.get(path)
        return known if known is not None and known.stamp == stamp else None

    def replace(self, files: dict[str, KnownFile], manifests: set[str]) -> bool:
        """Keep what a whole scan has found, except files that have just changed.

        Return whether that is anything new.
        """
        settled = time.time_ns() - _SETTLED_NS
        # What was kept before stays so.
        kept = {
            path: each
            for path, each in files.items()
            if each is self.files.get(path) or each.stamp.newest < settled
        }
        is_new = (kept, manifests) != (self.files, self.manifests)
        self.files, self.manifests = kept, manifests
        return is_new

    def save(self, folder: Path) -> None:
        """Write it for later programs, which would read all files again without it."""
        if self.path is None:
            return
        content = {
            "version": _VERSION,
            "folder": str(folder),
            "files": {path: (each.stamp, each.blocks) for path, each in self.files.items()},
            "manifests": sorted(self.manifests),
        }
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_text(json.dumps(content))
            draft.replace(self.path)
        except (OSError, UnicodeEncodeError) as error:
            log.debug("The cache %s cannot be written: %r", self.path, error)
            with suppress(OSError):
                draft.unlink()
