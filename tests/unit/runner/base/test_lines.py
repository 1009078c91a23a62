from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from monarch_client.runner.base.lines import LineReader, LineSplitter, Piece


def split(*chunks: bytes, limit: int = 32 * 1024) -> list[Piece]:
    splitter = LineSplitter(limit)
    return [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.close()


def test_lines_come_out_as_soon_as_they_are_complete() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [Piece("one")]
    assert splitter.feed(b"o\n\n") == [Piece("two"), Piece("")]
    assert splitter.close() == []


def test_an_unterminated_last_line_is_kept() -> None:
    assert split(b"done\nno newline") == [Piece("done"), Piece("no newline")]


def test_a_carriage_return_before_the_newline_is_not_part_of_the_line() -> None:
    assert split(b"dos\r\nunix\n") == [Piece("dos"), Piece("unix")]


def test_bytes_that_are_not_utf_8_are_replaced() -> None:
    assert split(b"caf\xe9 \xff\n") == [Piece("caf\ufffd \ufffd")]


def test_a_long_line_comes_in_pieces_all_but_the_last_marked() -> None:
    pieces = split(b"x" * 25, b"\n", limit=10)
    assert [len(piece.text) for piece in pieces] == [10, 10, 5]
    assert [piece.more for piece in pieces] == [True, True, False]


def test_a_line_of_exactly_the_limit_is_one_piece() -> None:
    assert split(b"x" * 10 + b"\n", limit=10) == [Piece("x" * 10)]


@pytest.mark.parametrize("limit", range(4, 12))
def test_a_long_line_is_never_cut_inside_a_character(limit: int) -> None:
    text = "aé☃\U0001f600" * 9
    pieces = split(*[bytes([byte]) for byte in text.encode()], b"\n", limit=limit)
    assert "".join(piece.text for piece in pieces) == text
    assert all(len(piece.text.encode()) <= limit for piece in pieces)


def test_ten_megabytes_without_a_newline_stay_bounded_in_memory() -> None:
    splitter = LineSplitter()
    size = 0
    for _ in range(160):
        pieces = splitter.feed(b"y" * 65536)
        size += sum(len(piece.text) for piece in pieces)
        assert len(splitter._rest) <= 32 * 1024
        assert all(piece.more for piece in pieces)
    (last,) = splitter.feed(b"\n")
    assert not last.more
    assert size + len(last.text) == 160 * 65536


def test_a_reader_reads_until_the_last_writer_has_closed() -> None:
    reading, writing = os.pipe()
    pieces: list[Piece] = []
    arrived = threading.Event()

    def take(new: list[Piece]) -> None:
        pieces.extend(new)
        arrived.set()

    reader = LineReader(reading, take)
    os.write(writing, b"first\nsec")
    assert arrived.wait(5)
    assert pieces == [Piece("first")]
    assert not reader.wait(0)
    os.write(writing, b"ond")
    os.close(writing)
    assert reader.wait(5)
    assert pieces == [Piece("first"), Piece("second")]


def test_a_line_that_takes_its_time_is_shown_as_far_as_it_is() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"step 1\n 10%") == [Piece("step 1")]
    assert splitter.flush() == [Piece(" 10%", more=True)]
    assert splitter.flush() == []
    assert splitter.feed(b"\r 20%") == []
    assert splitter.flush() == [Piece("\r 20%", more=True)]
    assert splitter.feed(b"\nstep 2\n") == [Piece(""), Piece("step 2")]
    assert splitter.close() == []


def test_an_end_after_a_flush_ends_the_line() -> None:
    splitter = LineSplitter()
    splitter.feed(b"sure? ")
    assert splitter.flush() == [Piece("sure? ", more=True)]
    assert splitter.close() == [Piece("")]
    assert splitter.close() == []


def test_a_flush_waits_for_the_rest_of_a_character() -> None:
    splitter = LineSplitter()
    snowman = "☃".encode()
    splitter.feed(b"a" + snowman[:2])
    assert splitter.flush() == [Piece("a", more=True)]
    assert splitter.flush() == []
    assert splitter.feed(snowman[2:] + b"\n") == [Piece("☃")]


def test_a_reader_gives_out_an_unfinished_line_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("monarch_client.runner.base.lines.FLUSH_S", 0.05)
    reading, writing = os.pipe()
    pieces: list[Piece] = []
    arrived = threading.Event()

    def take(new: list[Piece]) -> None:
        pieces.extend(new)
        arrived.set()

    reader = LineReader(reading, take)
    os.write(writing, b"loading")
    assert arrived.wait(5)
    os.write(writing, b" done\n")
    os.close(writing)
    assert reader.wait(5)
    assert "".join(piece.text for piece in pieces) == "loading done"
    assert [piece.more for piece in pieces] == [True] * (len(pieces) - 1) + [False]


def test_lines_of_a_program_that_never_pauses_are_not_cut(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # By this clock a second has always gone by, though the rest of each line is there already.
    ticks = itertools.count(step=2.0)
    monkeypatch.setattr(
        "monarch_client.runner.base.lines.time", SimpleNamespace(monotonic=lambda: next(ticks))
    )
    lines = [f"line {number} " + "x" * 90 for number in range(5000)]
    said = tmp_path / "said"
    said.write_text("".join(f"{line}\n" for line in lines))
    pieces: list[Piece] = []
    reader = LineReader(os.open(said, os.O_RDONLY), pieces.extend)
    assert reader.wait(30)
    assert pieces == [Piece(line) for line in lines]
