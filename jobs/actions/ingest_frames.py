"""Taking in what a runner tells: its lines and reports, each exactly once, in one transaction."""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction

from jobs import clock
from jobs.actions.apply_reports import apply_reports
from jobs.actions.store_mesh import masked_tree, store_mesh
from jobs.actions.store_samples import store_samples
from jobs.errors import AttemptClosedError, NotFoundError, PermissionDeniedError
from jobs.live.channel import publish_log_on_commit, publish_on_commit
from jobs.logs import mesh_frames
from jobs.logs.frames import Frame, parse
from jobs.logs.handed import LineMask
from jobs.logs.lines import encoded
from jobs.logs.node_clock import put_right
from jobs.logs.sealing import CHUNK_BYTES
from jobs.logs.write import append, locked_head
from jobs.models import Attempt, LogHead
from jobs.models.api_token import token_digest
from jobs.wakeups import wake_on_commit
from monarch_client.runner.crash_points import reach

# How stale `last_seen_at` may be: a write for every batch would bloat the row.
LAST_SEEN_PRECISION = timedelta(seconds=1)


class News(NamedTuple):
    """What of a request was not known before."""

    lines: list[str]  # as they are stored
    reports: list[Frame]


def ingest_frames(
    attempt_id: int, token: str, body: bytes, *, sent_at: float | None = None, took_s: float = 0.0
) -> dict[str, int]:
    """Store the frames of `body` and return the highest stored number of each rank (as text).

    Frames that are stored already are skipped; numbers that are missing are told by a line of the
    portal's own. `sent_at`: what the sender's clock showed then; `took_s`: how long ago the request
    began to arrive. No frames at all are a sign of life. NotFoundError, PermissionDeniedError and
    AttemptClosedError: send nothing more. InvalidFrameError: nothing of `body` was stored.
    """
    attempt = _attempt(attempt_id, token)
    frames = parse(body, attempt.job.num_nodes)
    if sent_at is not None:
        put_right(frames, sent_at=sent_at, received_at=clock.now().timestamp() - took_s)
    # They have no numbers: there is nothing to acknowledge, and nothing to wait for.
    states = [frame for frame in frames if "seq" not in frame]
    if states:
        frames = [frame for frame in frames if "seq" in frame]
    trees = [frame for frame in states if frame["kind"] == mesh_frames.KIND]
    tree = masked_tree(attempt, trees) if trees else None
    samples = [frame for frame in states if frame["kind"] != mesh_frames.KIND]
    with transaction.atomic():
        acked = _take_in(attempt, frames) if frames else _acknowledged(attempt_id)
        if samples:
            store_samples(attempt, samples)
        if tree is not None:
            store_mesh(attempt, tree)
        _note_contact(attempt)
    return acked


def _attempt(attempt_id: int, token: str) -> Attempt:
    attempt = Attempt.objects.select_related("job", "cluster").filter(pk=attempt_id).first()
    if attempt is None:
        raise NotFoundError(f"There is no attempt {attempt_id}.")
    if not hmac.compare_digest(token_digest(token), attempt.token_digest):
        raise PermissionDeniedError("This is not the token of this attempt.")
    if not attempt.takes_frames:
        raise AttemptClosedError
    return attempt


def _take_in(attempt: Attempt, frames: list[Frame]) -> dict[str, int]:
    # Whoever changes an attempt and its log locks the log first.
    head = locked_head(attempt.pk)
    transaction.on_commit(lambda: reach("ingest.committed"))
    mask = LineMask(attempt)
    news = _sift(head, frames, mask)
    mask.save()
    _store(head, news.lines)
    apply_reports(attempt, news.reports)
    acked: dict[str, int] = head.acked
    reach("ingest.stored")
    return acked


def _acknowledged(attempt_id: int) -> dict[str, int]:
    heads = LogHead.objects.filter(pk=attempt_id)
    return heads.values_list("acked", flat=True).first() or {}


def _note_contact(attempt: Attempt) -> None:
    now = clock.now()
    if attempt.last_seen_at is not None and now - attempt.last_seen_at < LAST_SEEN_PRECISION:
        return
    Attempt.objects.filter(pk=attempt.pk).update(last_seen_at=now)
    if Attempt.objects.filter(pk=attempt.pk, contacted_at=None).update(contacted_at=now):
        wake_on_commit("running", attempt.job_id)
        publish_on_commit(attempt.job)


def _sift(head: LogHead, frames: list[Frame], mask: LineMask) -> News:
    """What `head` has not acknowledged yet; acknowledges it."""
    acked = {int(rank): seq for rank, seq in head.acked.items()}
    news = News([], [])
    for frame in frames:
        rank, seq = frame["rank"], frame["seq"]
        expected = acked.get(rank, 0) + 1
        if seq < expected:
            continue
        if seq > expected:
            news.lines.append(_gap(frame, expected))
        acked[rank] = seq
        if frame["kind"] == "line":
            news.lines.append(_stored(frame, mask.text(frame)))
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
    """Append `lines`, save the head and tell followers and the compactor."""
    full_before = head.tail_bytes // CHUNK_BYTES
    if lines:
        append(head, lines)
        publish_log_on_commit(head.pk, head.next_line)
    head.save(update_fields=["next_line", "acked", "raw_bytes", "tail_bytes"])
    if head.tail_bytes // CHUNK_BYTES > full_before:
        wake_on_commit("sealing", head.pk)
