"""The owner of a blob store, so that no other portal sweeps it.

A mark among the files names the installation; in S3 every name begins with its key. A database that
is empty, older or another's knows nothing of what is stored there, and may not judge it.
"""

from __future__ import annotations

import logging

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from jobs.logs import blobs
from jobs.models import Attempt, Installation, LogChunk, Upload
from jobs.statuses import LogStore

log = logging.getLogger(__name__)

_FOLDER = "installation"
# Of what the database knows, so many of the newest are looked for in a store without a mark.
_LOOKED_FOR = 100
_STRANGE = (
    "nothing is swept up: the blob store is marked with %s, and this database is of installation "
    "%s. Look at DATABASE_URL and MPORTAL_HOME; if they are right, make %s the only file in that "
    "folder of the blob store."
)
_PAST = (
    "nothing is swept up: the blob store has logs of attempts up to %s, and this database has "
    "numbered %s so far. Look at DATABASE_URL; if it was restored from a backup, move the logs of "
    "later attempts away."
)


def claim_blobs(store: str = LogStore.FILES) -> bool:
    """Whether blobs in the store without a row are this installation's, to be swept.

    Files without a mark are taken when there are none, or some that the database knows.
    """
    is_ours = store != LogStore.FILES or _is_marked()
    return is_ours and not _comes_from_the_future(store)


def _is_marked() -> bool:
    key = Installation.current().key
    if not _marks() and _is_known_here():
        _mark(key)
    # A second copy of a mark that was made at the same time has a longer name.
    if {mark.partition("_")[0] for mark in _marks()} != {key}:
        marks = ", ".join(sorted(_marks())) or "nothing"
        log.warning(_STRANGE, marks, key, f"{_FOLDER}/{key}", extra={"action": "claim_blobs"})
        return False
    return True


def _marks() -> list[str]:
    return [name.rpartition("/")[2] for name in blobs.names_in(_FOLDER)]


def _mark(key: str) -> None:
    """Store an empty file named by the key of the installation that owns the blobs."""
    default_storage.save(f"{_FOLDER}/{key}", ContentFile(b""))


def _is_known_here() -> bool:
    if blobs.attempts_with_blobs():
        chunks = LogChunk.objects.filter(store=LogStore.FILES).order_by("-pk")[:_LOOKED_FOR]
        known = [chunk.blob_name for chunk in chunks]
    elif any(not blobs.is_draft(name) for name in blobs.names_in("uploads")):
        known = [upload.blob_name for upload in Upload.objects.order_by("-pk")[:_LOOKED_FOR]]
    else:
        return True
    return any(default_storage.exists(name) for name in known)


def _comes_from_the_future(store: str) -> bool:
    """Whether the store has logs of attempts that this database is yet to make."""
    newest, last = max(blobs.attempts_with_blobs(store), default=0), _last_attempt()
    if newest > last:
        log.warning(_PAST, newest, last, extra={"action": "claim_blobs"})
    return newest > last


def _last_attempt() -> int:
    """Return the highest number ever given, deleted attempts included."""
    statement = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence(%s, 'id')), 0)"
    with connection.cursor() as cursor:
        cursor.execute(statement, [Attempt._meta.db_table])
        return int(cursor.fetchone()[0])
