"""Remove logs that are too old, or whose project was deleted.

First logs are hidden, then their blobs are deleted, then their rows. A chunk's row outlives its
blob, so the next sweep finds what a crash left.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from jobs.ground import clock
from jobs.logs import blobs
from jobs.logs.write import locked_head
from jobs.models import Attempt, LogBlock, LogChunk, LogHead


def begun() -> list[int]:
    """List the attempts of whose removed logs there are chunks still."""
    chunks = LogChunk.objects.filter(attempt_id=OuterRef("pk"))
    heads = LogHead.objects.filter(Exists(chunks), removed_at__isnull=False)
    return list(heads.order_by("pk").values_list("pk", flat=True))


def too_old(ended_before: datetime, at_most: int) -> list[int]:
    """List the attempts that ended before that and have a log, the oldest first."""
    heads = LogHead.objects.filter(removed_at=None, next_line__gt=1)
    heads = heads.filter(attempt__ended_at__lt=ended_before)
    return list(heads.order_by("attempt__ended_at").values_list("pk", flat=True)[:at_most])


def of_deleted(at_most: int) -> list[int]:
    """Return the attempts of deleted projects that have a log."""
    heads = LogHead.objects.filter(removed_at=None, next_line__gt=1)
    heads = heads.filter(attempt__job__project__deleted_at__isnull=False)
    return list(heads.order_by("pk").values_list("pk", flat=True)[:at_most])


@transaction.atomic
def begin(attempt_id: int) -> None:
    """Remove the tail, and hide the rest from now on. Numbering and acknowledgements stay.

    Does nothing if the attempt does not exist, or is not over.
    """
    # Every change of an attempt and its log locks the log first.
    if not Attempt.objects.filter(pk=attempt_id).exists():
        return
    head = locked_head(attempt_id)
    if head.removed_at or not Attempt.objects.filter(pk=attempt_id, ended_at__lt=clock.now()):
        return
    LogBlock.objects.filter(attempt_id=attempt_id).delete()
    # A sealing that is under way finds that its lines have gone.
    head.sealed_before = head.next_line
    head.tail_bytes = 0
    head.removed_at = clock.now()
    head.save(update_fields=["sealed_before", "tail_bytes", "removed_at"])


def remove_some(attempt_id: int, at_most: int) -> int:
    """Remove at most so many of its chunks for good; how many it were. Safe to repeat.

    LogStoreAwayError: the store of some of them is away; their rows stay.
    """
    rows = LogChunk.objects.filter(attempt_id=attempt_id).order_by("first_line")
    chunks = list(rows[: at_most + 1])
    is_last = len(chunks) <= at_most
    del chunks[at_most:]
    for store in {chunk.store for chunk in chunks}:
        blobs.delete_many(store, [chunk.blob_name for chunk in chunks if chunk.store == store])
    if is_last:
        # What crashes left beside them goes as well.
        blobs.delete_all(attempt_id)
    for chunk in chunks:
        # One that was moved meanwhile has its blob elsewhere: the next sweep finds it there.
        here = {"store": chunk.store, "blob_name": chunk.blob_name}
        LogChunk.objects.filter(pk=chunk.pk, **here).delete()
    return len(chunks)
