"""Steps that cannot proceed now: record once in the job's history what the job waits for.

An API that restarts or a backend that is disabled proves nothing about machines. And the frames
that a dead runner left stay on its node while the portal's disk is full.
"""

from __future__ import annotations

import logging

from jobs.actions.jobs.history import record_note
from jobs.errors import BackendError
from jobs.models import Attempt, Job

log = logging.getLogger(__name__)

AWAY = "backend_away"
NO_ROOM = "no_room"


def note_unreachable(job: Job, attempt: Attempt, error: BackendError) -> None:
    """Record once that the backend does not answer; each tick queries it again."""
    context = {"action": AWAY, "job": job.pk, "backend": job.backend_name}
    log.warning("backend away: %s", error, extra=context)
    _note_once(job, attempt, AWAY, f"Waits for its backend. {error.message}")


def note_disk_full(job: Job, attempt: Attempt) -> None:
    """Record once that leftover frames of `attempt` wait for space on the portal's disk."""
    log.warning("no room for leftovers", extra={"action": NO_ROOM, "job": job.pk})
    _note_once(
        job,
        attempt,
        NO_ROOM,
        "Waits for space on the portal's disk for the rest of its log.",
    )


def _note_once(job: Job, attempt: Attempt, verb: str, message: str) -> None:
    last = job.events.order_by("-pk").first()
    if last is None or last.verb != verb:
        record_note(job, message, attempt, verb=verb)
