"""Sealed chunks as blobs, in the stores of `jobs.logs.stores`.

A blob's name is never used twice, so that none is ever overwritten. In S3 all names begin with the
installation's key: what two portals keep in one bucket never meets.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import Storage

from jobs.ground import clock
from jobs.logs import stores
from jobs.logs.stores import Blob
from jobs.models import Attempt, Installation, LogChunk, LogHead
from jobs.statuses import LogStore

# Longer than anything takes between the first byte of a blob and its row.
UNTOUCHED_FOR = timedelta(days=1)
_OURS = re.compile(r"(?P<first_line>\d{12,18})-[0-9a-f]{8}(?P<copy>\.copy)?(?:_\w+)?\.zst")


def write(attempt_id: int, first_line: int, payload: bytes, *, copy_to: str | None = None) -> Blob:
    """Store a chunk for good. `copy_to`: as a copy, whose row names another blob so far."""
    store = copy_to or stores.for_new_chunks()
    mark = ".copy" if copy_to else ""
    name = f"{_folder(store, attempt_id)}/{first_line:012d}-{secrets.token_hex(4)}{mark}.zst"
    with stores.asking(store) as storage:
        try:
            name = storage.save(name, ContentFile(payload))
        except OSError:
            # A full disk, as a rule: half a chunk would only make it fuller.
            storage.delete(name)
            raise
        _flush(storage, name)
    return Blob(store, name)


def delete(blob: Blob) -> None:
    """Remove a blob; silent if it does not exist."""
    with stores.asking(blob.store) as storage:
        storage.delete(blob.name)


def delete_many(store: str, names: list[str]) -> None:
    """Remove blobs of one store, with few requests where that is possible."""
    with stores.asking(store) as storage:
        if many := getattr(storage, "delete_many", None):
            many(names)
        else:
            for name in names:
                storage.delete(name)


def delete_all(attempt_id: int) -> None:
    """Remove every blob of an attempt from every store, those without a row included."""
    for store in stores.configured():
        _delete_folder(store, attempt_id)


def sweep(attempt_id: int, store: str) -> int:
    """Remove what a crash between blob and row left behind in a store; how much it was."""
    head = LogHead.objects.filter(pk=attempt_id).first()
    chunks = LogChunk.objects.filter(attempt_id=attempt_id, store=store)
    names = _names(store, attempt_id)
    # Asked after the names: of a chunk that is moved here meanwhile the copy is known, or young.
    known = set(chunks.values_list("blob_name", flat=True))
    left = [
        name
        for name in names
        if head and name not in known and _is_left(name, head.sealed_before, store)
    ]
    delete_many(store, left)
    return len(left)


def sweep_deleted(store: str) -> int:
    """Remove the old blobs of attempts that do not exist any more; of how many there were some.

    An attempt's row is there before its first blob: what is read here first and has none is over.
    """
    found = attempts_with_blobs(store)
    known = set(Attempt.objects.filter(pk__in=found).values_list("pk", flat=True))
    gone = [pk for pk in found if pk not in known]
    deleted = [pk for pk in gone if all(is_old(name, store) for name in _names(store, pk))]
    for attempt_id in deleted:
        _delete_folder(store, attempt_id)
    return len(deleted)


def attempts_with_blobs(store: str = LogStore.FILES) -> list[int]:
    """List the attempts whose logs are in a store, with or without rows."""
    with stores.asking(store) as storage:
        try:
            folders, _ = storage.listdir(_root(store))
        except FileNotFoundError:
            return []
    return [int(folder) for folder in folders if re.fullmatch(r"[0-9]{1,18}", folder)]


def names_in(folder: str, store: str = LogStore.FILES) -> list[str]:
    """List the blobs of a folder; empty if there is no such folder."""
    with stores.asking(store) as storage:
        try:
            _, files = storage.listdir(folder)
        except FileNotFoundError:
            return []
    return [f"{folder}/{file}" for file in files]


def is_old(name: str, store: str = LogStore.FILES) -> bool:
    """Whether no process can be about to write the row that a blob belongs to."""
    # A draft may have become a blob, or gone, since its folder was read.
    with stores.asking(store) as storage, suppress(FileNotFoundError):
        return storage.get_modified_time(name) < clock.now() - UNTOUCHED_FOR
    return False


def is_draft(name: str) -> bool:
    """Whether it has never become a blob."""
    return name.rpartition("/")[2].startswith(".")


def _delete_folder(store: str, attempt_id: int) -> None:
    folder = _folder(store, attempt_id)
    delete_many(store, names_in(folder, store))
    with stores.asking(store) as storage:
        # Object stores have no folders to remove.
        path = _local_path(storage, folder)
        # Another program may have put something there: then the folder stays.
        with suppress(OSError):
            path.rmdir() if path and path.is_dir() else None


def _root(store: str) -> str:
    return "logs" if store == LogStore.FILES else f"{Installation.current().key}/logs"


def _folder(store: str, attempt_id: int) -> str:
    return f"{_root(store)}/{attempt_id}"


def _names(store: str, attempt_id: int) -> list[str]:
    return names_in(_folder(store, attempt_id), store)


def _is_left(name: str, sealed_before: int, store: str) -> bool:
    """Whether a blob that no row names is left over. Files that the portal did not write stay."""
    ours = _OURS.fullmatch(name.rpartition("/")[2])
    # A blob from there on may belong to a sealing that is under way.
    if ours is None or int(ours["first_line"]) >= sealed_before:
        return False
    # A copy may be one of a move that is under way.
    return not ours["copy"] or is_old(name, store)


def _local_path(storage: Storage, name: str) -> Path | None:
    try:
        return Path(storage.path(name))
    except NotImplementedError:
        return None


def _flush(storage: Storage, name: str) -> None:
    """Flush a blob to disk: the rows that it replaces are about to be deleted durably."""
    path = _local_path(storage, name)
    if path is None:
        return
    for each in (path, path.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
