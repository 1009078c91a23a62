"""The ingest of a runner's lines and reports, each exactly once, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from django.db import DataError, transaction

from jobs.actions.ingest.apply_reports import apply_reports
from jobs.actions.ingest.store_mesh import masked_tree, store_mesh
from jobs.actions.ingest.store_program_metrics import store_program_metrics
from jobs.actions.ingest.store_samples import store_samples
from jobs.actions.ingest.store_tasks import masked_reports, store_tasks
from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.live.channel import publish_log_on_commit, publish_on_commit
from jobs.logs.frames import Frame, parse
from jobs.logs.handed import AttemptKey, LineMask, redaction_for
from jobs.logs.lines import encoded
from jobs.logs.node_clock import put_right
from jobs.logs.sealing import CHUNK_BYTES
from jobs.logs.senders import Sender, sender_of
from jobs.logs.write import append, locked_head
from jobs.models import Attempt, LogHead
from jobs.policies.program_metrics import Report, report_of
from monarch_client.crash_points import reach
from monarch_client.runner.vocabulary.frames import LINE, MESH, METRICS, TASKS
from monarch_client.runner.vocabulary.streams import PROGRAM_STREAMS

logger = logging.getLogger(__name__)

# How stale `last_seen_at` may be: a write for every batch would bloat the row.
LAST_SEEN_PRECISION = timedelta(seconds=1)


class News(NamedTuple):
    """The part of a request that was not known before."""

    lines: list[str]  # as they are stored
    reports: list[Frame]
    metrics: list[Report]


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
    tree = masked_tree(sender.attempt, trees) if trees else None
    samples = [frame for frame in states if frame["kind"] == METRICS]
    tasks = [frame for frame in states if frame["kind"] == TASKS]
    reports = masked_reports(sender.attempt, tasks) if tasks else []
    with transaction.atomic():
        acked = _take_in(sender, frames) if frames else _acknowledged(sender.attempt_id)
        if samples:
            _store_state(sender, lambda: store_samples(sender.attempt, samples))
        if tree is not None:
            _store_state(sender, lambda: store_mesh(sender.attempt, tree))
        if reports:
            _store_state(sender, lambda: store_tasks(sender.attempt, reports))
        _note_contact(sender)
    return acked


def _store_state(sender: Sender, store: Callable[[], None]) -> None:
    """Store a state in its own savepoint: one that the database refuses costs no line."""
    try:
        with transaction.atomic():
            store()
    except DataError:
        logger.exception("A state of attempt %d cannot be stored.", sender.attempt_id)


def _take_in(sender: Sender, frames: list[Frame]) -> dict[str, int]:
    # Every change of an attempt and its log locks the log first.
    head = locked_head(sender.attempt_id)
    transaction.on_commit(lambda: reach("ingest.committed"))
    key = AttemptKey(sender.attempt_id, sender.job_id, sender.number, sender.has_secrets)
    mask = LineMask(redaction_for(key), frames, head.open_ends)
    news = _sift(head, frames, mask)
    _store(head, news.lines)
    if news.reports:
        apply_reports(sender.attempt, news.reports)
    if news.metrics:
        store_program_metrics(sender.attempt, news.metrics)
    acked: dict[str, int] = head.acked
    reach("ingest.stored")
    return acked


def _acknowledged(attempt_id: int) -> dict[str, int]:
    heads = LogHead.objects.filter(pk=attempt_id)
    return heads.values_list("acked", flat=True).first() or {}


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


def _sift(head: LogHead, frames: list[Frame], mask: LineMask) -> News:
    """Return the frames that `head` has not acknowledged yet; acknowledge them."""
    acked = {int(rank): seq for rank, seq in head.acked.items()}
    news = News([], [], [])
    for frame in frames:
        rank, seq = frame["rank"], frame["seq"]
        expected = acked.get(rank, 0) + 1
        if seq < expected:
            continue
        if seq > expected:
            news.lines.append(_gap(frame, expected))
        acked[rank] = seq
        if frame["kind"] == LINE:
            text = mask.text(frame)
            news.lines.append(_stored(frame, text))
            if frame["stream"] in PROGRAM_STREAMS:
                head.last_lines[str(rank)] = int(frame["t"])
            report = report_of(rank, frame["t"], text)
            # The rest of a line that is not complete may change its last number.
            if report and not frame.get("more", False):
                news.metrics.append(report)
        else:
            news.reports.append(frame)
    head.acked = {str(rank): seq for rank, seq in acked.items()}
    return news


def _stored(frame: Frame, text: str) -> str:
    more = frame.get("more", False)
    return encoded(frame["rank"], frame["stream"], int(frame["t"] * 1000), text, more=more)


def _gap(frame: Frame, expected: int) -> str:
    missing = frame["seq"] - expected
    text = (
        f"[portal] {missing} messages of rank {frame['rank']} are missing here: numbers "
        f"{expected} to {frame['seq'] - 1} never arrived."
    )
    return encoded(frame["rank"], "portal", int(frame["t"] * 1000), text)


def _store(head: LogHead, lines: list[str]) -> None:
    """Append `lines`, save the head and notify followers and the compactor."""
    full_before = head.tail_bytes // CHUNK_BYTES
    append(head, lines)
    if lines:
        publish_log_on_commit(head.pk, head.next_line)
    if head.tail_bytes // CHUNK_BYTES > full_before:
        wake_on_commit("sealing", head.pk)
