"""Remove what crashes left of uploads: unfinished drafts, and contents that nothing refers to."""

from __future__ import annotations

from django.core.files.storage import default_storage

from jobs.logs import blobs
from jobs.models import JobCode, Upload

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


def _is_owned(name: str) -> bool:
    digest = name.removeprefix(f"{_FOLDER}/").removesuffix(".tar.gz")
    owners = (Upload.objects.filter(digest=digest), JobCode.objects.filter(digest=digest))
    return any(each.exists() for each in owners)
