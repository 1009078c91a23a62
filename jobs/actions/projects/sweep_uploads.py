"""Remove what crashes left of uploads: unfinished drafts, and contents that nothing refers to."""

from __future__ import annotations

from django.core.files.storage import default_storage
from django.db import connection, transaction

from jobs.logs import blobs
from jobs.models import JobCode, Upload
from jobs.models.upload import blob_name_of

_FOLDER = "uploads"


def sweep_uploads() -> int:
    """Delete them; how many there were. Safe to repeat."""
    deleted = 0
    for name in blobs.names_in(_FOLDER):
        # Each just before it goes: the same content may have come again meanwhile. Such an upload
        # makes the blob young before it makes the row, so the age is what is looked at last.
        if blobs.is_old(name) and not _is_owned(name) and blobs.is_old(name):
            default_storage.delete(name)
            deleted += 1
    return deleted


def delete_unowned(digest: str) -> None:
    """Delete the archive with this digest now, unless something refers to it."""
    name = blob_name_of(digest)
    with transaction.atomic():
        lock_content(digest)
        if not _is_owned(name):
            default_storage.delete(name)


def lock_content(digest: str) -> None:
    """Wait until no other transaction takes up, or deletes, the archive with this digest."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [digest])


def _is_owned(name: str) -> bool:
    digest = name.removeprefix(f"{_FOLDER}/").removesuffix(".tar.gz")
    owners = (Upload.objects.filter(digest=digest), JobCode.objects.filter(digest=digest))
    return any(each.exists() for each in owners)
