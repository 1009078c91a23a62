"""What a step does that cannot go on for now: the job waits, and its history says for what.

An API that restarts, a backend that was switched off: neither proves anything about machines. And
what a dead runner has left stays where it is while the portal's disk has no room for it.
"""

from __future__ import annotations

import logging

from jobs.actions.jobs.history import record_note
from jobs.errors import BackendError
from jobs.models import Attempt, Job

log = logging.getLogger(__name__)

AWAY = "backend_away"
NO_ROOM = "no_room"


def note_away(job: Job, attempt: Attempt, error: BackendError) -> None:
    """Write it down once; the next tick asks again, for as long as it takes."""
    context = {"action": AWAY, "job": job.pk, "backend": job.backend_name}
    log.warning("backend away: %s", error, extra=context)
    _note_once(job, attempt, AWAY, f"Waits for its backend. {error.message}")


def note_no_room(job: Job, attempt: Attempt) -> None:
    """The same where the last words of `attempt` have to wait for room on the portal's disk."""
    log.warning("no room for leftovers", extra={"action": NO_ROOM, "job": job.pk})
    _note_once(job, attempt, NO_ROOM, "Its end waits for room on the portal's disk for its lines.")


def _note_once(job: Job, attempt: Attempt, verb: str, message: str) -> None:
    last = job.events.order_by("-pk").first()
    if last is None or last.verb != verb:
        record_note(job, message, attempt, verb=verb)
