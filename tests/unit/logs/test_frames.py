from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import InvalidFrameError
from jobs.logs.frames import MAX_TEXT_CHARS, parse
from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES
from tests.frame_bytes import body, frame

SOUND = [
    frame(1),
    frame(2, text="", stream="portal"),
    frame(3, text="x" * MAX_TEXT_CHARS, more=True),
    frame(4, "stage", stage="setup", phase="begin"),
    frame(5, "stage", stage="run", phase="end", ok=False, detail="exit 1"),
    frame(6, "worker", status="READY", address="127.64.1.11:22222", pid=7, exit_code=None),
    frame(7, "worker", status="LOST", about=1, detail="silent for 15 s"),
    frame(8, "exit", exit_code=137, signal=9),
    frame(9, "end", reason="USER_CODE", exit_code=1, message="m", hint="h", evidence="e"),
]


def test_every_kind_of_frame_is_read_as_it_was_written() -> None:
    assert parse(body(*SOUND), 2) == SOUND


@pytest.mark.parametrize("empty", [b"", b"\n", b" \r\n"])
def test_an_empty_body_holds_no_frames(empty: bytes) -> None:
    assert parse(empty, 1) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 2},
        {"rank": -1},
        {"rank": True},
        {"rank": "0"},
        {"seq": 0},
        {"seq": 2**60},
        {"seq": 1.0},
        {"t": "now"},
        {"t": -1},
        {"t": float("nan")},
        {"t": float("inf")},
        {"t": True},
        {"kind": "shout"},
        {"kind": ["line"]},
        {"text": None},
        {"text": "x" * (MAX_TEXT_CHARS + 1)},
        {"stream": "stdin"},
        {"stream": ["stdout"]},
        {"more": 1},
    ],
)
def test_a_line_that_is_not_sound_is_refused_by_its_name(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidFrameError, match=r"^Frame 2 \(rank") as caught:
        parse(body(frame(1), {**frame(2), **wrong}), 2)
    assert caught.value.data["frame"] == 2


@pytest.mark.parametrize(
    "report",
    [
        frame(1, "stage", stage="launch", phase="begin"),
        frame(1, "stage", stage="run", phase="middle"),
        frame(1, "stage", phase="begin"),
        frame(1, "stage", rank=1, stage="run", phase="begin"),
        frame(1, "worker", status="PENDING"),
        frame(1, "worker", status="READY", pid=-1),
        frame(1, "worker", status="READY", detail={"a": 1}),
        frame(1, "worker", status="LOST", about=2),
        frame(1, "worker", rank=1, status="LOST", about=0),
        frame(1, "exit", exit_code=None),
        frame(1, "exit", exit_code=2**31),
        frame(1, "end", reason="BUDGET"),
        frame(1, "end", reason="NONSENSE"),
        frame(1, "end", rank=1, reason="COMPLETED"),
    ],
)
def test_a_report_that_is_not_sound_is_refused(report: dict[str, object]) -> None:
    with pytest.raises(InvalidFrameError):
        parse(body(report), 2)


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense",
        b"[1]",
        b'"text"',
        b"null",
        b"{}",
        b"{",
        b"[" * 100_000,
        b'{"rank":0,"seq":1' + b"0" * 5000 + b"}",
        json.dumps(frame(1)).encode() + b"," + json.dumps(frame(2)).encode(),
        json.dumps(frame(1)).encode() + b"\n\n" + json.dumps(frame(2)).encode(),
        b'{"rank":0,"seq":1,"t":1,"kind":"line","stream":"stdout"\n"text":"x"}',
        b"\xff\xfe",
    ],
)
def test_what_is_not_one_object_a_line_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidFrameError, match=r"^Frame"):
        parse(raw, 1)


def test_a_body_over_the_bound_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidFrameError, match="bytes"):
        parse(b"[" * (MAX_BODY_BYTES + 1), 1)


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_but_parse_or_be_refused(raw: bytes) -> None:
    with suppress(InvalidFrameError):
        parse(raw, 1)


_FIELDS = sorted({name for each in SOUND for name in each})
_VALUES: st.SearchStrategy[object] = st.sampled_from(
    [None, True, -1, 0, 1, 2**70, -0.5, 1e300, "", "x", "run", "LOST", "\ud800", [], ["x"], {}]
)


@given(st.sampled_from(SOUND), st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=3))
def test_no_value_of_a_field_does_anything_but_pass_or_be_refused(
    sound: dict[str, object], values: dict[str, object]
) -> None:
    with suppress(InvalidFrameError):
        parse(body({**sound, **values}), 2)
