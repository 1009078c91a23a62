"""Reading what a runner posts: NDJSON frames, checked strictly and within bounds.

Who sent them, what is new and what it means is for `jobs.actions.ingest.ingest_frames`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from jobs.errors import InvalidFrameError
from jobs.logs import mesh_frames, samples, task_frames
from monarch_client.runner.vocabulary.frames import (
    END,
    EXIT,
    LINE,
    MESH,
    STACKS,
    STAGE,
    TASKS,
    UNNUMBERED,
    WORKER,
)
from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES, MAX_PIECE_BYTES
from monarch_client.runner.vocabulary.reasons import REASONS
from monarch_client.runner.vocabulary.stages import PHASES, STAGES
from monarch_client.runner.vocabulary.streams import STREAMS
from monarch_client.runner.vocabulary.worker_states import WORKER_STATES

Frame = dict[str, Any]

# Other writers of frames may cut less exactly than the runner.
MAX_TEXT_CHARS = 2 * MAX_PIECE_BYTES
_MAX_FIELD_CHARS = 64 * 1024
_MAX_SEQ = 2**53
LATEST_TIME = 32_503_680_000  # the year 3000: beyond it times can't be shown
_MAX_INT = 2**31 - 1
# NaN and Infinity are not JSON: each check refuses this value by the name of its field.
_NOT_FINITE = object()

Field = Annotated[str, Meta(max_length=_MAX_FIELD_CHARS)]
Int = Annotated[int, Meta(ge=-_MAX_INT, le=_MAX_INT)]
Natural = Annotated[int, Meta(ge=0, le=_MAX_INT)]


def _one_of(values: Iterable[str]) -> Meta:
    return Meta(pattern=rf"\A(?:{'|'.join(map(re.escape, sorted(values)))})\Z")


class StageReport(Struct):
    """The begin or end of a stage."""

    stage: Annotated[str, _one_of(STAGES)]
    phase: Annotated[str, _one_of(PHASES)]
    ok: bool = True
    detail: Field | None = None


class WorkerReport(Struct):
    """The state of a node's worker."""

    status: Annotated[str, _one_of(WORKER_STATES)]
    about: Natural = 0
    host: Field | None = None
    address: Field | None = None
    mesh: Field | None = None
    pid: Natural | None = None
    python: Field | None = None
    exit_code: Int | None = None
    detail: Field | None = None


class ExitReport(Struct):
    """The exit of a node's command."""

    exit_code: Int
    signal: Int | None = None


class StacksReport(Struct):
    """The stacks of one process, or, with `done`, the last answer to a request."""

    ask: Natural
    pid: Natural | None = None
    command: Field | None = None
    text: Field | None = None
    why: Field | None = None
    left_out: Natural | None = None
    done: bool = False


class EndReport(Struct):
    """The verdict of a runner."""

    reason: Annotated[str, _one_of(REASONS)]
    exit_code: Int | None = None
    message: Field | None = None
    hint: Field | None = None
    evidence: Field | None = None
    crash: Field | None = None


_REPORTS: dict[str, type[Struct]] = {
    STAGE: StageReport,
    WORKER: WorkerReport,
    EXIT: ExitReport,
    STACKS: StacksReport,
    END: EndReport,
}
# Texts of programs and machines, which may hold anything.
TEXT_FIELDS = (
    "detail", "host", "address", "mesh", "python", "command", "text", "why", "message", "hint",
    "evidence", "crash",
)  # fmt: skip
# These speak for the whole attempt.
_FROM_RANK_0 = frozenset({STAGE, END})


def parse(body: bytes, num_ranks: int) -> list[Frame]:
    """Parse `body` into its frames, in order, each of them valid.

    InvalidFrameError names the first invalid one: nothing of the body may be stored then, since
    what follows it must not be acknowledged before it.
    """
    if len(body) > MAX_BODY_BYTES:
        raise InvalidFrameError(f"More than {MAX_BODY_BYTES} bytes of frames in one request.")
    frames = _load(body)
    for index, frame in enumerate(frames, 1):
        wrong = _what_is_wrong(frame, num_ranks)
        if wrong:
            raise InvalidFrameError(f"{_name(index, frame)}: {wrong}", frame=index)
    return frames


def _decode(text: bytes) -> Any:
    return json.loads(text, parse_constant=lambda _: _NOT_FINITE)


def _load(body: bytes) -> list[Any]:
    body = body.strip()
    if not body:
        return []
    lines = body.count(b"\n") + 1
    try:
        # One call for all of them: decoding line by line takes three times as long.
        frames = _decode(b"[%b]" % body.replace(b"\n", b","))
    except (ValueError, RecursionError):
        return _load_each(body)
    return frames if len(frames) == lines else _load_each(body)


def _load_each(body: bytes) -> list[Any]:
    """Load the frames one by one to find the one that cannot be read."""
    return [_load_one(index, line) for index, line in enumerate(body.split(b"\n"), 1)]


def _load_one(index: int, line: bytes) -> Any:
    try:
        return _decode(line)
    except (ValueError, RecursionError) as error:
        raise InvalidFrameError(f"Frame {index} is not JSON: {error}", frame=index) from None


def _name(index: int, frame: Any) -> str:
    if not isinstance(frame, dict):
        return f"Frame {index}"
    return f"Frame {index} (rank {frame.get('rank')!s:.20}, seq {frame.get('seq')!s:.20})"


def _what_is_wrong(frame: Any, num_ranks: int) -> str:
    """Describe what is wrong in a sentence; "" if nothing is. Called for every log line."""
    if type(frame) is not dict:
        return "it is not an object."
    rank: Any = frame.get("rank")
    seq: Any = frame.get("seq")
    at: Any = frame.get("t")
    if type(rank) is not int or not 0 <= rank < num_ranks:
        return f"its rank is not one of the job's {num_ranks}."
    kind: Any = frame.get("kind")
    is_numbered = "seq" in frame or type(kind) is not str or kind not in UNNUMBERED
    if is_numbered and (type(seq) is not int or not 0 < seq <= _MAX_SEQ):
        return "its seq is not a number from 1."
    if type(at) not in (float, int) or not 0 <= at < LATEST_TIME:
        return "its t is not a time in seconds."
    return _wrong_content(frame, num_ranks) if is_numbered else _wrong_state(frame, num_ranks)


def _wrong_state(frame: Frame, num_ranks: int) -> str:
    if frame["kind"] == MESH:
        return mesh_frames.what_is_wrong_with_tree(frame, num_ranks)
    if frame["kind"] == TASKS:
        return task_frames.what_is_wrong_with_report(frame)
    return samples.what_is_wrong_with_sample(frame)


def _wrong_content(frame: Frame, num_ranks: int) -> str:
    is_line = frame.get("kind") == LINE
    return _wrong_line(frame) if is_line else _wrong_report(frame, num_ranks)


def _wrong_line(frame: Frame) -> str:
    text, stream = frame.get("text"), frame.get("stream")
    if type(text) is not str or len(text) > MAX_TEXT_CHARS:
        return f"its text is not a string of at most {MAX_TEXT_CHARS} characters."
    if type(stream) is not str or stream not in STREAMS:
        return f"its stream is not one of {', '.join(sorted(STREAMS))}."
    if type(frame.get("more", False)) is not bool:
        return "its more is neither true nor false."
    return ""


def _wrong_report(frame: Frame, num_ranks: int) -> str:
    kind = frame.get("kind")
    if type(kind) is not str or kind not in _REPORTS:
        return f"its kind is not one of line, {', '.join(_REPORTS)}."
    try:
        msgspec.convert(frame, _REPORTS[kind])
    except ValueError as error:
        return f"it is not what a frame of kind {kind} may hold: {error}."
    about = about_rank(frame)
    if frame["rank"] != 0 and (kind in _FROM_RANK_0 or about != frame["rank"]):
        return f"only rank 0 may send it ({kind})."
    if about >= num_ranks:
        return f"it is about a rank that is not one of the job's {num_ranks}."
    return ""


def about_rank(frame: Frame) -> int:
    """Return the rank that a valid report is about: its own, or the one that rank 0 reports on."""
    speaks_of_another = frame["kind"] == WORKER and "about" in frame
    rank: int = frame["about"] if speaks_of_another else frame["rank"]
    return rank
