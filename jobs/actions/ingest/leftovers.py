"""Frames that a dead runner left on its disk."""

from __future__ import annotations

from jobs.actions.ingest.store_frames import batches, store_batch
from jobs.backends.base import ComputeBackend
from jobs.ground.disk_space import require_room_for_frames
from jobs.models import Attempt
from jobs.statuses import Carrier


def ingest_leftovers(attempt: Attempt, backend: ComputeBackend, *, may_live: bool = False) -> None:
    """Store the frames that were not acknowledged yet, and the verdict in any case.

    Errors on a dead runner's disk do not keep its attempt from ending. Errors on the portal's own
    disk do, since the frames go with their machines. FramesPostponedError: try again.
    `may_live`: its runner may not have ended.
    """
    if attempt.cluster is None:
        return
    pushes = backend.carrier == "either" and attempt.carrier == Carrier.PUSH
    if pushes and may_live:
        # On such backends a runner that pushes prints only its verdict, at the end.
        return
    for batch in batches(backend.leftovers(attempt.cluster.name, attempt_id=attempt.pk).frames):
        require_room_for_frames()
        store_batch(attempt, batch)
