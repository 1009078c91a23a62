"""The ingest of a runner's lines and reports, each exactly once, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from django.db import DataError, transaction

from jobs.actions.ingest.apply_reports import apply_reports
from jobs.actions.ingest.sift_frames import News, sift_frames
from jobs.actions.ingest.store_mesh import masked_tree, store_mesh
from jobs.actions.ingest.store_program_metrics import store_program_metrics
from jobs.actions.ingest.store_samples import store_samples
from jobs.actions.ingest.store_tasks import MaskedReport, masked_reports, store_tasks
from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.live.channel import publish_log_on_commit, publish_on_commit
from jobs.logs.frames import Frame, parse
from jobs.logs.node_clock import put_right
from jobs.logs.sealing import CHUNK_BYTES
from jobs.logs.senders import LogState, Sender, sender_of
from jobs.logs.write import append, locked_head
from jobs.models import Attempt, LogHead
from monarch_client.crash_points import reach
from monarch_client.runner.vocabulary.frames import MESH, METRICS, TASKS

logger = logging.getLogger(__name__)

# How stale `last_seen_at` may be: a write for every batch would bloat the row.
LAST_SEEN_PRECISION = timedelta(seconds=1)


class _States(NamedTuple):
    """The states that a request reports, masked."""

    tree: Frame | None
    samples: list[Frame]
    reports: list[MaskedReport]


def ingest_frames(
    attempt_id: int, token: str, body: bytes, *, sent_at: float | None = None, took_s: float = 0.0
) -> dict[str, int]:
    """Ingest frames as `take_in` does, from the sender that `token` identifies.

    NotFoundError, PermissionDeniedError and AttemptClosedError: send nothing more.
    """
    return take_in(sender_of(attempt_id, token), body, sent_at=sent_at, took_s=took_s)


def take_in(
    sender: Sender, body: bytes, *, sent_at: float | None = None, took_s: float = 0.0
) -> dict[str, int]:
    """Store the frames of `body` and return the highest stored number of each rank (as text).

    Frames that are stored already are skipped; missing numbers are noted in a line of the
    portal's own. `sent_at`: the time of the sender's clock then; `took_s`: how long ago the request
    began to arrive. No frames at all are a sign of life. InvalidFrameError: nothing of `body` was
    stored.
    """
    frames = parse(body, sender.num_hosts)
    if sent_at is not None:
        put_right(frames, sent_at=sent_at, received_at=clock.now().timestamp() - took_s)
    # They have no numbers: there is nothing to acknowledge, and nothing to wait for.
    states = [frame for frame in frames if "seq" not in frame]
    if states:
        frames = [frame for frame in frames if "seq" in frame]
    trees = [frame for frame in states if frame["kind"] == MESH]
    tasks = [frame for frame in states if frame["kind"] == TASKS]
    masked = _States(
        masked_tree(sender.attempt, trees) if trees else None,
        [frame for frame in states if frame["kind"] == METRICS],
        masked_reports(sender.attempt, tasks) if tasks else [],
    )
    state = sender.log_state
    while True:
        # Masking takes time, so it is done before the log is locked.
        news = sift_frames(sender, state, frames)
        with transaction.atomic():
            state = _store_frames(sender, news) if frames else state
            if state.of_ranks(news.ranks) == news.after:
                _store_states(sender, masked)
                _note_contact(sender)
                return state.acked


def _store_frames(sender: Sender, news: News) -> LogState:
    """Store what is new, unless frames of the same ranks came since it was sifted.

    Return the state of the log.
    """
    # Every change of an attempt and its log locks the log first.
    head = locked_head(sender.attempt_id)
    state = LogState(head.acked, head.open_ends)
    if state.of_ranks(news.ranks) != news.before:
        return state
    transaction.on_commit(lambda: reach("ingest.committed"))
    head.acked, head.open_ends = state = state.with_ranks(news.ranks, news.after)
    head.last_lines |= news.last_lines
    _append(head, news.lines)
    if news.reports:
        apply_reports(sender.attempt, news.reports)
    if news.metrics:
        store_program_metrics(sender.attempt, news.metrics)
    reach("ingest.stored")
    return state


def _store_states(sender: Sender, states: _States) -> None:
    if states.samples:
        _store_state(sender, lambda: store_samples(sender.attempt, states.samples))
    if (tree := states.tree) is not None:
        _store_state(sender, lambda: store_mesh(sender.attempt, tree))
    if states.reports:
        _store_state(sender, lambda: store_tasks(sender.attempt, states.reports))


def _store_state(sender: Sender, store: Callable[[], None]) -> None:
    """Store a state in its own savepoint: one that the database refuses costs no line."""
    try:
        with transaction.atomic():
            store()
    except DataError:
        logger.exception("A state of attempt %d cannot be stored.", sender.attempt_id)


def _note_contact(sender: Sender) -> None:
    now = clock.now()
    if sender.last_seen_at is not None and now - sender.last_seen_at < LAST_SEEN_PRECISION:
        return
    attempts = Attempt.objects.filter(pk=sender.attempt_id)
    first = {"last_seen_at": now, "contacted_at": now}
    if sender.contacted_at is None and attempts.filter(contacted_at=None).update(**first):
        # Its machines exist, whether or not their backend has reported them by now.
        wake_on_commit("provisioning", sender.job_id)
        publish_on_commit(sender.attempt.job)
        return
    attempts.update(last_seen_at=now)


def _append(head: LogHead, lines: list[str]) -> None:
    """Append `lines`, save the head and notify followers and the compactor."""
    full_before = head.tail_bytes // CHUNK_BYTES
    append(head, lines)
    if lines:
        publish_log_on_commit(head.pk, head.next_line)
    if head.tail_bytes // CHUNK_BYTES > full_before:
        wake_on_commit("sealing", head.pk)
