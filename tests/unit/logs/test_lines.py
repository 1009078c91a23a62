from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.lines import STREAMS, decompressed, encoded, line_of, packed, storable

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))


def stored_in(payload: bytes) -> list[str]:
    return decompressed(payload).decode().split("\n")


@given(
    st.integers(0, 10_000),
    st.sampled_from(sorted(STREAMS)),
    st.integers(0, 10**13),
    TEXTS,
    st.booleans(),
)
def test_a_line_comes_back_as_it_was_stored(
    rank: int, stream: str, at_ms: int, text: str, more: bool
) -> None:
    payload, size = packed([encoded(rank, stream, at_ms, text, more=more)])
    (stored,) = stored_in(payload)
    line = line_of(7, stored)
    assert (line.number, line.rank, line.stream, line.text) == (7, rank, stream, text)
    assert (line.more, size) == (more, len(stored.encode()) + 1)
    assert line.at.tzinfo is timezone.utc
    assert round(line.at.timestamp() * 1000) == at_ms


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("nul \0 here", "nul \0 here"),
        ("half \ud83d of a character", "half \N{REPLACEMENT CHARACTER} of a character"),
        ("two\nlines", "two\N{SYMBOL FOR NEWLINE}lines"),
        ("bar\r100%", "bar\r100%"),
        (" spaces  kept ", " spaces  kept "),
    ],
)
def test_hostile_text_is_made_storable_as_one_line(text: str, kept: str) -> None:
    payload, _ = packed([encoded(0, "stdout", 0, text), encoded(1, "stderr", 1, "next")])
    texts = [line_of(1, stored).text for stored in stored_in(payload)]
    assert texts == [kept, "next"]


def test_a_text_column_gets_neither_nul_nor_halves_of_characters_nor_too_much() -> None:
    assert storable("a\0b\ud800cdef", 5) == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"


def test_times_are_kept_to_the_millisecond() -> None:
    line = line_of(1, encoded(0, "stdout", 1_790_000_000_123, "x"))
    assert line.at == datetime(2026, 9, 21, 14, 13, 20, 123_000, tzinfo=timezone.utc)
