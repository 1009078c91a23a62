"""Deleting an attempt's log: the tail, the chunks and, once that is committed, the blobs."""

from __future__ import annotations

from django.db import transaction

from jobs.logs import blobs
from jobs.logs.write import locked_head
from jobs.models import Attempt, LogBlock, LogChunk


@transaction.atomic
def delete_log(attempt: Attempt) -> None:
    """Delete the log of `attempt`. Its numbering and acknowledgements stay, so that frames that
    come later get new numbers and none is stored again.
    """
    attempt_id = attempt.pk
    head = locked_head(attempt_id)
    LogBlock.objects.filter(attempt_id=attempt_id).delete()
    LogChunk.objects.filter(attempt_id=attempt_id).delete()
    head.sealed_before = head.next_line
    head.tail_bytes = 0
    head.save(update_fields=["sealed_before", "tail_bytes"])
    transaction.on_commit(lambda: blobs.delete_all(attempt_id), robust=True)
