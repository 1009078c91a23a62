from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from monarch_client.runner.base.lines import Piece
from monarch_client.runner.journal import journal as journal_module
from monarch_client.runner.journal.journal import Journal, read_leftovers
from monarch_client.runner.journal.recorder import Recorder


def recorded(journal: Journal, count: int, rank: int = 0) -> None:
    recorder = Recorder(journal, rank)
    for number in range(count):
        recorder.write("line", stream="stdout", text=f"line {number}", more=False)


def numbers(lines: list[bytes]) -> list[int]:
    return [json.loads(line)["seq"] for line in lines]


def test_what_is_written_is_read_in_order_until_it_is_acknowledged(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    recorded(journal, 5)
    assert numbers(journal.peek(10_000)) == [1, 2, 3, 4, 5]
    assert numbers(journal.peek(10_000)) == [1, 2, 3, 4, 5]
    journal.acknowledge(journal.peek(10_000)[:2])
    assert numbers(journal.peek(10_000)) == [3, 4, 5]
    assert not journal.is_read
    journal.acknowledge(journal.peek(10_000))
    assert journal.is_read
    assert journal.peek(10_000) == []


def test_a_batch_keeps_to_its_limit_but_has_at_least_one_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    recorded(journal, 5)
    lines = journal.peek(10_000)
    assert numbers(journal.peek(1)) == [1]
    assert numbers(journal.peek(len(b"".join(lines[:3])))) == [1, 2, 3]


def test_acknowledged_segments_are_deleted(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=400)
    recorded(journal, 40)
    assert len(list(tmp_path.glob("*.ndjson"))) > 5
    seen: list[int] = []
    while not journal.is_read:
        lines = journal.peek(1000)
        seen += numbers(lines)
        journal.acknowledge(lines)
    assert seen == list(range(1, 41))
    assert len(list(tmp_path.glob("*.ndjson"))) == 1


def test_a_new_runner_goes_on_where_the_dead_one_stopped(tmp_path: Path) -> None:
    first = Journal(tmp_path, segment_bytes=400)
    recorded(first, 10)
    recorded(first, 3, rank=2)
    first.acknowledge(first.peek(500))
    acknowledged = 10 + 3 - len(list(read_leftovers(tmp_path)))
    second = Journal(tmp_path, segment_bytes=400)
    assert second.highest == {0: 10, 2: 3}
    recorded(second, 2)
    left = []
    while not second.is_read:
        lines = second.peek(10_000)
        left += [(json.loads(line)["rank"], json.loads(line)["seq"]) for line in lines]
        second.acknowledge(lines)
    everything = [(0, n) for n in range(1, 11)] + [(2, 1), (2, 2), (2, 3), (0, 11), (0, 12)]
    assert left == everything[acknowledged:]


def test_a_torn_last_line_is_dropped_and_its_number_given_again(tmp_path: Path) -> None:
    recorded(Journal(tmp_path), 3)
    segment = next(tmp_path.glob("*.ndjson"))
    segment.write_bytes(segment.read_bytes()[:-7])
    assert [json.loads(line)["seq"] for line in read_leftovers(tmp_path)] == [1, 2]
    journal = Journal(tmp_path)
    recorded(journal, 1)
    assert numbers(journal.peek(10_000)) == [1, 2, 3]


def test_leftovers_of_an_empty_or_missing_journal_are_none(tmp_path: Path) -> None:
    assert list(read_leftovers(tmp_path / "nothing")) == []
    Journal(tmp_path)
    assert list(read_leftovers(tmp_path)) == []


def test_the_reader_is_woken_by_a_line_and_by_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert not journal.wait(0)
    recorded(journal, 1)
    assert journal.wait(0)
    journal.acknowledge(journal.peek(1000))
    journal.finish()
    assert journal.wait(30)


def test_numbers_of_a_rank_have_no_holes_across_batches(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    recorder = Recorder(journal, 3)
    recorder.write("stage", stage="setup")
    recorder.write_lines("stdout", [Piece("a"), Piece("b", more=True)])
    recorder.remark("careful")
    frames = [json.loads(line) for line in journal.peek(10_000)]
    assert [(frame["rank"], frame["seq"]) for frame in frames] == [(3, 1), (3, 2), (3, 3), (3, 4)]
    assert [frame["kind"] for frame in frames] == ["stage", "line", "line", "line"]
    assert [frame.get("more") for frame in frames] == [None, False, True, False]
    assert frames[3]["stream"] == "portal"


def test_frames_are_ascii_whatever_the_text(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    Recorder(journal, 0).remark("naïve ☃ \U0001f600 \x00")
    line = journal.peek(10_000)[0]
    assert line.isascii()
    assert json.loads(line)["text"] == "naïve ☃ \U0001f600 \x00"


def test_a_disk_too_full_to_note_what_is_acknowledged_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, segment_bytes=1)
    recorded(journal, 3)

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module, "_write_position", no_space)
    for number in (1, 2, 3):
        lines = journal.peek(10_000)
        assert numbers(lines) == [number]
        journal.acknowledge(lines)
    assert journal.is_read
    monkeypatch.undo()
    # What is delivered makes room; a runner that follows knows the last number by what is left.
    assert numbers(list(read_leftovers(tmp_path))) == [3]
    follower = Journal(tmp_path)
    assert follower.highest == {0: 3}
    recorded(follower, 1)
    assert numbers(follower.peek(1) + follower.peek(10_000)[1:]) == [3, 4]


def test_a_journal_that_is_kept_is_read_once_and_stays_on_the_disk(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=400)
    recorded(journal, 20)
    assert not journal.keep()
    seen: list[int] = []
    while len(seen) < 12:
        lines = journal.peek(1)
        seen += numbers(lines)
        journal.acknowledge(lines)
    again = Journal(tmp_path, segment_bytes=400)
    assert again.last_number(0) == 20
    assert again.keep()
    recorded(again, 2)
    while not again.is_read:
        lines = again.peek(1000)
        seen += numbers(lines)
        again.acknowledge(lines)
    assert seen == list(range(1, 23))
    assert numbers(list(read_leftovers(tmp_path))) == list(range(1, 23))


def test_of_what_was_read_only_the_last_segments_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MOST_KEPT_SEGMENTS", 2)
    journal = Journal(tmp_path, segment_bytes=400)
    recorded(journal, 40)
    journal.keep()
    while not journal.is_read:
        journal.acknowledge(journal.peek(1000))
    assert len(list(tmp_path.glob("*.ndjson"))) == 3
    left = numbers(list(read_leftovers(tmp_path)))
    assert left == list(range(left[0], 41))
