"""End attempts whose runners are silent, if the backend reports that the runners are dead."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from jobs.actions.attempts.end_attempt import close_attempt
from jobs.actions.ingest.leftovers import ingest_leftovers
from jobs.actions.jobs.history import record_note
from jobs.backends import registry
from jobs.backends.base import ClusterPhase, ClusterView, ComputeBackend, NodeView
from jobs.errors import BackendError, FramesPostponedError, StillLookingError
from jobs.ground import clock
from jobs.logs.lines import storable
from jobs.models import Attempt, Job
from jobs.reconcilers.blocked import note_disk_full, note_unreachable
from jobs.statuses import EVIDENCE, Carrier, StageName, StopReason

# A runner sends a frame at least every 5 seconds once its nodes are up.
SILENT_AFTER = timedelta(seconds=12)
# A runner that can reach the portal has by then: it tries for ten seconds after its start.
UNREACHED_AFTER = timedelta(seconds=30)
_EVIDENCE_CHARS = 4000


def look_for_runners(job: Job, attempt: Attempt) -> None:
    """End an open attempt if a runner with an overdue report is dead."""
    is_silent = _is_silent(attempt)
    if not is_silent and not _misses_ranks(job, attempt):
        return
    assert attempt.cluster is not None  # noqa: S101 - start_attempt makes them together
    try:
        backend = registry.get(job.backend_name)
        view = backend.observe(attempt.cluster.name, attempt_id=attempt.pk)
    except StillLookingError:
        # The next tick reads the answer.
        return
    except BackendError as error:
        note_unreachable(job, attempt, error)
        return
    if backend.carrier == "either":
        _fetch_what_is_not_pushed(attempt, view)
    # A silent carrier proves nothing; a backend that sees the head's runner dead does.
    if is_silent and not _head_lives(view):
        _store_leftover_frames(job, attempt, backend, view)
    elif not is_silent and (node := _dead_before_it_joined(attempt, view)) is not None:
        _end_without_verdict(job, attempt, node, has_spoken=False)


def _fetch_what_is_not_pushed(attempt: Attempt, view: ClusterView) -> None:
    """Have the follower fetch the frames of nodes that are up and have not reached the portal."""
    if attempt.carrier or attempt.contacted_at is not None or view.phase is ClusterPhase.STARTING:
        return
    if clock.now() - _there_since(attempt) < UNREACHED_AFTER:
        return
    Attempt.objects.filter(pk=attempt.pk, carrier="").update(carrier=Carrier.PULL)


def _is_silent(attempt: Attempt) -> bool:
    last = attempt.last_seen_at or _there_since(attempt)
    return last < clock.now() - SILENT_AFTER


def _there_since(attempt: Attempt) -> datetime:
    """Return when the nodes were up. A launch may take minutes, and is not silence.

    Querying the nodes sooner delays the start itself, on a busy login node by as much again.
    """
    launch = attempt.stages.filter(name=StageName.LAUNCH).first()
    return (launch.ended_at if launch else None) or attempt.created_at


def _misses_ranks(job: Job, attempt: Attempt) -> bool:
    """Whether the first report of a rank is overdue."""
    if attempt.run_started_at is not None or _there_since(attempt) > clock.now() - SILENT_AFTER:
        return False
    return attempt.workers.count() < job.num_hosts


def _head_lives(view: ClusterView) -> bool:
    """Whether rank 0, which sends all reports, has a live runner."""
    # A backend may not know the addresses of stopped machines.
    if view.phase in {ClusterPhase.ENDED, ClusterPhase.GONE, ClusterPhase.STOPPED}:
        return False
    return _dead_head(view) is None


def _dead_head(view: ClusterView) -> NodeView | None:
    """Return the node of rank 0, if it is up and its runner is dead."""
    return next((node for node in view.nodes if node.rank == 0 and not node.alive), None)


def _dead_before_it_joined(attempt: Attempt, view: ClusterView) -> NodeView | None:
    """Return a node that never reported and whose runner is dead: rank 0 would wait forever."""
    heard_of = {0, *attempt.workers.values_list("rank", flat=True)}
    return next((node for node in view.nodes if not node.alive and node.rank not in heard_of), None)


def _store_leftover_frames(
    job: Job, attempt: Attempt, backend: ComputeBackend, view: ClusterView
) -> None:
    try:
        ingest_leftovers(attempt, backend)
    except FramesPostponedError:
        note_disk_full(job, attempt)
        return
    except StillLookingError:
        return
    except BackendError as error:
        note_unreachable(job, attempt, error)
        return
    attempt.refresh_from_db()
    if attempt.ended_at is None:
        has_spoken = attempt.contacted_at is not None
        _end_without_verdict(job, attempt, _dead_head(view), has_spoken=has_spoken)


@transaction.atomic
def _end_without_verdict(
    job: Job, attempt: Attempt, node: NodeView | None, *, has_spoken: bool
) -> None:
    """Close the attempt; store what the runner printed outside the log as evidence."""
    printed = storable(node.detail, _EVIDENCE_CHARS) if node else ""
    host = f"rank {node.rank}" if node else "the first host"
    if printed and not has_spoken:
        # It would die again in each further attempt.
        reason = StopReason.BACKEND
        message = f"The runner of {host} died at the start of attempt {attempt.number}."
        hint = "See what it printed. Most often the node's Python cannot start."
    else:
        reason = StopReason.WORKER_LOST
        message = f"Lost {host} in attempt {attempt.number}: it stopped reporting."
        hint = "The machine was restarted or the runner was killed; see the last lines of the log."
    given = close_attempt(attempt, reason, message, hint, evidence=printed)
    if given and printed:
        record_note(job, printed, attempt, verb=EVIDENCE)
