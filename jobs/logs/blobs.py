"""Sealed chunks as blobs in Django's default storage: files, or whatever STORAGES names.

A blob's name is never used twice, so that none is ever overwritten.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from jobs import clock
from jobs.models import Attempt, LogChunk, LogHead

# Longer than anything takes between the first byte of a blob and its row.
UNTOUCHED_FOR = timedelta(days=1)


def write(attempt_id: int, first_line: int, payload: bytes) -> str:
    """Store a chunk for good and return its name."""
    name = f"{_folder(attempt_id)}/{first_line:012d}-{secrets.token_hex(4)}.zst"
    try:
        name = default_storage.save(name, ContentFile(payload))
    except OSError:
        # A full disk, as a rule: half a chunk would only make it fuller.
        delete(name)
        raise
    _flush(name)
    return name


def delete(name: str) -> None:
    """Remove a blob; silent when it is gone."""
    default_storage.delete(name)


def delete_all(attempt_id: int) -> None:
    """Remove every blob of an attempt, those without a row included."""
    for name in _names(attempt_id):
        delete(name)
    # Object stores have no folders to remove.
    if path := _local_path(_folder(attempt_id)):
        path.rmdir() if path.is_dir() else None


def sweep(attempt_id: int) -> None:
    """Remove what a crash between blob and row left behind."""
    head = LogHead.objects.filter(pk=attempt_id).first()
    chunks = LogChunk.objects.filter(attempt_id=attempt_id)
    known = set(chunks.values_list("blob_name", flat=True))
    for name in _names(attempt_id):
        # A blob from here on may belong to a sealing that is under way.
        if head and name not in known and _first_line(name) < head.sealed_before:
            delete(name)


def sweep_deleted() -> int:
    """Remove the old blobs of attempts that do not exist any more; of how many there were some.

    An attempt's row is there before its first blob: what is read here first and has none is over.
    """
    found = attempts_with_blobs()
    known = set(Attempt.objects.filter(pk__in=found).values_list("pk", flat=True))
    deleted = [pk for pk in found if pk not in known and all(map(is_old, _names(pk)))]
    for attempt_id in deleted:
        delete_all(attempt_id)
    return len(deleted)


def attempts_with_blobs() -> list[int]:
    """Whose logs there are, rows or not."""
    try:
        folders, _ = default_storage.listdir("logs")
    except FileNotFoundError:
        return []
    return [int(folder) for folder in folders if folder.isdigit()]


def names_in(folder: str) -> list[str]:
    """The blobs of a folder; none when there is no such folder."""
    try:
        _, files = default_storage.listdir(folder)
    except FileNotFoundError:
        return []
    return [f"{folder}/{file}" for file in files]


def is_old(name: str) -> bool:
    """Whether nobody can be about to write the row that a blob belongs to."""
    # A draft may have become a blob, or gone, since its folder was read.
    with suppress(FileNotFoundError):
        return default_storage.get_modified_time(name) < clock.now() - UNTOUCHED_FOR
    return False


def is_draft(name: str) -> bool:
    """Whether it has never become a blob."""
    return name.rpartition("/")[2].startswith(".")


def _folder(attempt_id: int) -> str:
    return f"logs/{attempt_id}"


def _names(attempt_id: int) -> list[str]:
    return names_in(_folder(attempt_id))


def _first_line(name: str) -> int:
    return int(name.rpartition("/")[2].partition("-")[0])


def _local_path(name: str) -> Path | None:
    try:
        return Path(default_storage.path(name))
    except NotImplementedError:
        return None


def _flush(name: str) -> None:
    """Onto the disk: the rows it replaces are about to be deleted durably."""
    path = _local_path(name)
    if path is None:
        return
    for each in (path, path.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
