"""Frames that a dead runner left on its disk."""

from __future__ import annotations

import logging
from itertools import count

from django.db import connection

from jobs.actions.ingest.store_frames import batches, store_batch
from jobs.backends.base import ComputeBackend
from jobs.ground.disk_space import require_room_for_frames
from jobs.models import Attempt
from jobs.statuses import Carrier

log = logging.getLogger(__name__)

# Each may take as long as a transaction may.
_MOST_FAILURES = 20


def ingest_leftovers(attempt: Attempt, backend: ComputeBackend, *, may_live: bool = False) -> None:
    """Store the frames that were not acknowledged yet, and the verdict in any case.

    Neither errors on a dead runner's disk nor frames that cannot be stored keep its attempt from
    ending. A full disk or an absent database of the portal do, since the frames go with their
    machines. FramesPostponedError: try again. `may_live`: its runner may not have ended.
    """
    if attempt.cluster is None:
        return
    pushes = backend.carrier == "either" and attempt.carrier == Carrier.PUSH
    if pushes and may_live:
        # On such backends a runner that pushes prints only its verdict, at the end.
        return
    failures = count(1)
    for batch in batches(backend.leftovers(attempt.cluster.name, attempt_id=attempt.pk).frames):
        require_room_for_frames()
        if not _stored(attempt, batch, failures):
            return


def _stored(attempt: Attempt, batch: list[bytes], failures: count[int]) -> bool:
    """Store a batch, in halves where that fails, without frames that fail alone.

    False: too many have failed.
    """
    waiting = [batch]
    while waiting:
        part = waiting.pop()
        try:
            store_batch(attempt, part)
        except Exception:
            _require_database(attempt)
            context = {"action": "leftovers", "attempt": attempt.pk, "frames": len(part)}
            log.exception("leftover frames cannot be stored", extra=context)
            if next(failures) > _MOST_FAILURES:
                return False
            half = len(part) // 2
            waiting += [part[half:], part[:half]] if half else []
    return True


def _require_database(attempt: Attempt) -> None:
    """Raise the database's error if it is away, so that no frame is to blame."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
    Attempt.objects.filter(pk=attempt.pk).exists()
