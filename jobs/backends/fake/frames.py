"""The frames that the runner of a fake cluster would have written, as a function of the time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monarch_client.runner.vocabulary import frames, reasons, stages, streams, worker_states

_BEGINNING = (
    (stages.SETUP, stages.BEGIN),
    (stages.SETUP, stages.END),
    (stages.RUN, stages.BEGIN),
)


@dataclass(frozen=True, slots=True)
class Story:
    """The events of a fake cluster, in seconds since the epoch."""

    num_nodes: int
    up_at: float
    ends_at: float | None
    lines: tuple[str, ...]
    line_every_s: float
    exit_code: int
    was_stopped: bool


def frames_of(story: Story, now: float, after: Mapping[int, int]) -> Iterator[bytes]:
    """Yield the frames of all events until `now`, beyond the numbers in `after`, in order."""
    numbers = [0] * story.num_nodes
    for at, rank, kind, fields in _events(story):
        if at > now:
            return
        numbers[rank] += 1
        if numbers[rank] <= after.get(rank, 0):
            continue
        frame = {"rank": rank, "seq": numbers[rank], "t": at, "kind": kind, **fields}
        yield json.dumps(frame).encode() + b"\n"


def _events(story: Story) -> Iterator[tuple[float, int, str, dict[str, Any]]]:
    for rank in range(story.num_nodes):
        yield story.up_at, rank, frames.WORKER, _worker(worker_states.RUNNING)
    for name, phase in _BEGINNING:
        yield story.up_at, 0, frames.STAGE, _stage(name, phase, ok=True)
    for index, line in enumerate(story.lines):
        at = story.up_at + index * story.line_every_s
        if story.ends_at is not None and at > story.ends_at:
            break
        yield at, 0, frames.LINE, {"stream": streams.STDOUT, "text": line, "more": False}
    if story.ends_at is None:
        return
    exit_code = 143 if story.was_stopped else story.exit_code
    yield story.ends_at, 0, frames.STAGE, _stage(stages.RUN, stages.END, ok=exit_code == 0)
    for rank in range(story.num_nodes):
        yield story.ends_at, rank, frames.EXIT, {"exit_code": exit_code}
        yield story.ends_at, rank, frames.WORKER, _worker(worker_states.EXITED, exit_code)
    yield story.ends_at, 0, frames.END, _end(story, exit_code)


def _worker(status: str, exit_code: int | None = None) -> dict[str, Any]:
    return {
        "status": status,
        "host": "fake-node",
        "address": "",
        "mesh": "",
        "pid": 1,
        "python": "3.11",
        "exit_code": exit_code,
        "detail": "",
    }


def _stage(name: str, phase: str, *, ok: bool) -> dict[str, Any]:
    return {"stage": name, "phase": phase, "ok": ok, "detail": ""}


def _end(story: Story, exit_code: int) -> dict[str, Any]:
    reason, message = reasons.COMPLETED, "The program ended."
    if story.was_stopped:
        reason, message = reasons.CANCELLED_BY_USER, "The program was stopped by request."
    elif exit_code != 0:
        reason, message = reasons.USER_CODE, f"The program ended with exit code {exit_code}."
    hint = "" if reason == reasons.COMPLETED else "See the last lines of the log."
    return {
        "reason": reason,
        "exit_code": exit_code,
        "message": message,
        "hint": hint,
        "evidence": "",
    }
