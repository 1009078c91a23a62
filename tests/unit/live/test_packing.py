"""Compression done once for all readers: what any of them gets is one good stream."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.live.packing import Packed, Piece, joined, takes_deflate

PIECES = st.lists(st.binary(max_size=300) | st.just(b"loss 2.1 step 17\n" * 20_000), max_size=6)


@given(PIECES)
def test_every_reader_gets_back_all_bytes_wherever_it_began(texts: list[bytes]) -> None:
    pieces = [Piece(each) for each in texts]
    for begin in range(len(pieces) + 1):
        stream = Packed()
        sent = b"".join(map(stream.add, pieces[begin:])) + stream.end()
        # It compares the checksum too.
        assert zlib.decompress(sent) == b"".join(texts[begin:])


@given(PIECES)
def test_a_reader_has_a_piece_as_soon_as_its_bytes_have_come(texts: list[bytes]) -> None:
    stream, reader = Packed(), zlib.decompressobj()
    for each in texts:
        assert reader.decompress(stream.add(Piece(each))) == each


@given(st.binary(), st.binary())
def test_the_checksum_of_two_texts_is_that_of_both_together(first: bytes, second: bytes) -> None:
    sums = zlib.adler32(first), zlib.adler32(second)
    assert joined(*sums, len(second)) == zlib.adler32(first + second)


def test_a_piece_is_compressed_once_for_all() -> None:
    piece = Piece(b"loss 2.1 step 17\n" * 100)
    assert piece.packed is piece.packed
    assert len(piece.packed) < len(piece.raw) / 8


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("identity", False),
        ("gzip, deflate, br, zstd", True),
        ("Deflate", True),
        ("gzip, deflate;q=0.5", True),
        ("deflate; q=0", False),
        ("deflate;q=0.000, gzip", False),
        ("x-deflate", False),
    ],
)
def test_streams_are_compressed_for_those_who_take_it(header: str, *, expected: bool) -> None:
    assert takes_deflate(header) is expected
