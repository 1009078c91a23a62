"""Decide whether `setup` can be skipped: it succeeded last on this node, and nothing changed.

Every attempt has a new work directory, so that a setup which leaves files there must run again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.small_files import write_note

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Iterator, Mapping

    from monarch_client.runner.place import Place

# Python writes these wherever it imports from.
_PASSED_OVER = frozenset({"__pycache__"})
_CHUNK_BYTES = 1024 * 1024
# These differ between attempts, so they matter only if setup uses them.
_ATTEMPT_VARIABLES = re.compile(r"\b(?:SKYPILOT|MPORTAL)_[A-Z_]+\b")
_SHOWN_NAMES = 3


class Stamp(NamedTuple):
    """A note from earlier attempts: why setup is skipped, or why it runs again."""

    path: Path
    skipped: str = ""
    remark: str = ""


def look(place: Place, env: Mapping[str, str]) -> Stamp | None:
    """Look up whether `setup` with environment `env` succeeded here; None if that is unknown."""
    shared = place.folder.shared
    if shared is None or not place.config.setup:
        return None
    # The address is in the name because nodes may share their home.
    path = shared / "setup" / _digest(place, env) / place.config.address_of(place.rank)
    try:
        before = json.loads(path.read_text())
        whence = _attempt(place, before)
    except (OSError, ValueError, KeyError, TypeError):
        return Stamp(path)
    if place.config.setup_always:
        return Stamp(path)
    if before.get("left"):
        names = ", ".join(before["left"])
        return Stamp(path, remark=f"setup runs again: in {whence} it left {names} in the workdir")
    return Stamp(path, skipped=f"unchanged since {whence}")


def forget_all(place: Place) -> None:
    """Delete the stamps of this node before a setup runs, which may undo what others did."""
    if place.folder.shared is None:
        return
    stamps = place.folder.shared / "setup"
    for path in stamps.glob("*/" + place.config.address_of(place.rank)):
        with contextlib.suppress(OSError):
            path.unlink()


def leave(place: Place, stamp: Stamp, left: list[str]) -> None:
    """Write a stamp after a successful setup; `left` names its files in the work directory."""
    config = place.config
    try:
        stamp.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return  # it will run again
    note = {"job_id": config.job_id, "attempt_number": config.attempt_number}
    write_note(stamp.path, json.dumps({**note, "left": left[:_SHOWN_NAMES]}))


def listing(workdir: Path) -> dict[str, tuple[int, int]]:
    """Return every file of the work directory with its size and time; folders with zeros.

    An unreadable directory differs from every other listing.
    """
    found: dict[str, tuple[int, int]] = {}
    try:
        found.update(_entries(str(workdir), ""))
    except OSError as error:
        found[f"files that cannot be read ({error.strerror})"] = (-1, time.monotonic_ns())
    return found


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the outermost names that differ between two listings."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return sorted({name.split("/")[0] for name in names})


def _attempt(place: Place, note: Mapping[str, Any]) -> str:
    which = "attempt {}".format(int(note["attempt_number"]))
    if note["job_id"] == place.config.job_id:
        return which
    return "{} of job {}".format(which, int(note["job_id"]))


def _digest(place: Place, env: Mapping[str, str]) -> str:
    config = place.config
    uploads = [[each.target, each.sha256 or _sha256(each.archive)] for each in config.uploads]
    names = {*config.envs, *config.secrets, *_ATTEMPT_VARIABLES.findall(config.setup or "")}
    seen = {name: env.get(name) for name in names}
    what = [config.setup, uploads, sorted(seen.items()), place.rank]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _entries(folder: str, prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in _PASSED_OVER:
                continue
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield name, (0, 0)
                yield from _entries(entry.path, name + "/")
            else:
                found = entry.stat(follow_symlinks=False)
                yield name, (found.st_size, found.st_mtime_ns)
