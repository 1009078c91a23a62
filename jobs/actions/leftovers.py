"""Frames that a dead runner left on its disk."""

from __future__ import annotations

from jobs.actions.store_frames import batches, store_batch
from jobs.backends.base import ComputeBackend
from jobs.disk_space import require_room_for_frames
from jobs.models import Attempt
from jobs.statuses import Carrier


def ingest_leftovers(attempt: Attempt, backend: ComputeBackend, *, may_live: bool = False) -> None:
    """Store what nobody has acknowledged yet, and the verdict even if somebody has.

    Nothing that is wrong with a dead runner's disk keeps its attempt from ending. With the portal's
    own disk it is otherwise, as the frames go with their machines. FramesPostponedError: try again.
    `may_live`: its runner may not have ended.
    """
    if attempt.cluster is None:
        return
    pushes = backend.carrier == "either" and attempt.carrier == Carrier.PUSH
    if pushes and may_live:
        # Where frames are pushed or printed, one that pushes prints its verdict alone, at the end.
        return
    for batch in batches(backend.leftovers(attempt.cluster.name, attempt_id=attempt.pk).frames):
        require_room_for_frames()
        store_batch(attempt, batch)
