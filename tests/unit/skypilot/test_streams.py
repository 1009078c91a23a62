"""Calls that yield: in order, to the end or until the reader stops, never faster than read."""

from __future__ import annotations

import os
import queue
import signal
from pathlib import Path

import pytest

from monarch_client.skypilot.caller import SkyCaller
from monarch_client.skypilot.errors import SkyPilotError
from monarch_client.skypilot.streams import WINDOW
from tests.waiting import eventually


def test_all_pieces_come_in_order_and_then_the_end(caller: SkyCaller) -> None:
    with caller.stream("pieces", {"count": WINDOW * 3}) as stream:
        found = [stream.get(20) for _ in range(WINDOW * 3)]
        assert found == [f"piece {number}" for number in range(WINDOW * 3)]
        assert stream.get(20) is None
        assert stream.get(0) is None


def test_an_error_comes_after_the_pieces_before_it(caller: SkyCaller) -> None:
    with caller.stream("pieces", {"count": 2, "error": "not_up"}) as stream:
        assert [stream.get(20), stream.get(20)] == ["piece 0", "piece 1"]
        with pytest.raises(SkyPilotError, match="No more") as raised:
            stream.get(20)
    assert raised.value.kind == "not_up"


def test_a_reader_who_leaves_ends_the_call(caller: SkyCaller, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    with caller.stream("endless", {"diary": str(diary)}) as stream:
        assert stream.get(20) == "piece"
        with pytest.raises(queue.Empty):
            stream.get(0.1)
    assert eventually(diary.exists)


def test_a_slow_reader_is_not_overrun(caller: SkyCaller, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    with caller.stream("pieces", {"count": 100_000, "diary": str(diary)}) as stream:
        assert stream.get(20) == "piece 0"
        assert caller.call("echo", {"value": 1}, 20) == 1
    assert eventually(diary.exists)
    assert int(diary.read_text()) <= WINDOW + 2


def test_a_child_that_dies_ends_its_streams_with_an_error(
    caller: SkyCaller, tmp_path: Path
) -> None:
    with caller.stream("endless", {"diary": str(tmp_path / "diary")}) as stream:
        assert stream.get(20) == "piece"
        pid = caller.child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(SkyPilotError) as raised:
            stream.get(20)
    assert raised.value.kind == "interrupted"


def test_a_streaming_child_is_not_idle(make_caller, tmp_path: Path) -> None:
    caller = make_caller(idle_s=0.1)
    with caller.stream("endless", {"diary": str(tmp_path / "diary")}) as stream:
        assert stream.get(20) == "piece"
        with pytest.raises(queue.Empty):
            stream.get(1.5)
