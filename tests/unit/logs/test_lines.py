from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.lines import (
    compressed_for_good,
    decompressed,
    encoded,
    line_of,
    packed,
    storable,
)
from monarch_client.runner.vocabulary.streams import STREAMS

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
    assert line.at_iso == line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


def of_training() -> bytes:
    """Generate lines that differ only in their numbers."""
    pick = random.Random(1)
    lines = (
        f"0 o{1_795_475_655_937 + step} step {step:8d} | loss {pick.gauss(3, 1):.4f} | "
        f"grad_norm {pick.random():.3f} | {pick.randrange(171_000, 189_000)} tokens/s"
        for step in range(10_000)
    )
    return "\n".join(lines).encode()


def of_words() -> bytes:
    """Read prose and programs: this project's own."""
    root = Path(__file__).parents[3]
    texts = [path.read_bytes() for path in sorted((root / "jobs").rglob("*.py"))]
    return b"\n".join(texts)[: 1024 * 1024]


@pytest.mark.parametrize(
    ("raw", "limit"), [(of_training(), 0.99), (of_words(), 1.12)], ids=["training", "words"]
)
def test_what_is_kept_for_good_is_about_as_small_as_with_a_far_longer_search(
    raw: bytes, limit: float
) -> None:
    payload = compressed_for_good(raw)
    assert decompressed(payload) == raw
    longer = zstandard.ZstdCompressor(level=12).compress(raw)
    assert len(payload) < limit * len(longer)


@pytest.mark.parametrize("raw", [b"", b"a", b"a" * 300_000], ids=["none", "one", "one-long"])
def test_what_is_kept_for_good_may_be_of_any_length(raw: bytes) -> None:
    assert zstandard.decompress(compressed_for_good(raw)) == raw
