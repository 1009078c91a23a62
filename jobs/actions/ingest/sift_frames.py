"""Pick out of a request the frames that are new, and mask them: all that takes time.

It is done before the attempt's log is locked. `ingest_frames` then stores the result if the log has
not changed since.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jobs.logs.frames import TEXT_FIELDS, Frame
from jobs.logs.handed import AttemptKey, LineMask
from jobs.logs.lines import encoded
from jobs.logs.senders import LogState, Sender
from jobs.policies.program_metrics import Report, report_of
from monarch_client.runner.vocabulary.frames import LINE
from monarch_client.runner.vocabulary.streams import PROGRAM_STREAMS


class News(NamedTuple):
    """The part of a request that was not known before, masked.

    `before` and `after`: the state of the log of `ranks`, those that sent frames.
    """

    ranks: frozenset[str]
    before: LogState
    after: LogState
    lines: list[str]  # as they are stored
    last_lines: dict[str, int]  # see LogHead
    reports: list[Frame]
    metrics: list[Report]


def sift_frames(sender: Sender, state: LogState, frames: list[Frame]) -> News:
    """Return what `state` of the log has not acknowledged yet. It takes time: hold no lock."""
    ranks = frozenset(str(frame["rank"]) for frame in frames)
    before = state.of_ranks(ranks)
    acked, open_ends = {**before.acked}, {**before.open_ends}
    news = News(ranks, before, LogState(acked, open_ends), [], {}, [], [])
    new, gaps = _new(frames, acked)
    lines = [frame for frame in new if frame["kind"] == LINE]
    key = AttemptKey(sender.attempt_id, sender.job_id, sender.number, sender.has_secrets)
    mask = LineMask(key, open_ends)
    texts = iter(mask.texts(lines))
    for frame in new:
        if id(frame) in gaps:
            news.lines.append(_gap(frame, gaps[id(frame)]))
        if frame["kind"] == LINE:
            _add_line(news, frame, next(texts))
        else:
            masked = {name: mask.excerpt(frame[name]) for name in TEXT_FIELDS if frame.get(name)}
            news.reports.append({**frame, **masked})
    return news


def _new(frames: list[Frame], acked: dict[str, int]) -> tuple[list[Frame], dict[int, int]]:
    """Return the new frames, and by id of a frame the number that was due. Acknowledge them."""
    new: list[Frame] = []
    gaps: dict[int, int] = {}
    for frame in frames:
        rank, seq = str(frame["rank"]), frame["seq"]
        expected = acked.get(rank, 0) + 1
        if seq < expected:
            continue
        if seq > expected:
            gaps[id(frame)] = expected
        acked[rank] = seq
        new.append(frame)
    return new, gaps


def _add_line(news: News, frame: Frame, text: str) -> None:
    rank, stream, at, more = frame["rank"], frame["stream"], frame["t"], frame.get("more", False)
    news.lines.append(encoded(rank, stream, int(at * 1000), text, more=more))
    if stream in PROGRAM_STREAMS:
        news.last_lines[str(rank)] = int(at)
    report: Any = report_of(rank, at, text)
    # The rest of a line that is not complete may change its last number.
    if report and not more:
        news.metrics.append(report)


def _gap(frame: Frame, expected: int) -> str:
    missing = frame["seq"] - expected
    text = (
        f"[portal] {missing} messages of rank {frame['rank']} are missing here: numbers "
        f"{expected} to {frame['seq'] - 1} never arrived."
    )
    return encoded(frame["rank"], "portal", int(frame["t"] * 1000), text)
