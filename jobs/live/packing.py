"""Compression that is done once for all readers of a stream.

A stream in the zlib format (RFC 1950, the content coding "deflate" of HTTP) is put together of
pieces that were compressed each by itself: no piece refers to what came before it, and each ends
on a whole byte. So the same bytes serve readers who began at different places.
"""

from __future__ import annotations

import zlib
from functools import cached_property

# Raw deflate, without header and checksum: those are the whole stream's.
_RAW_WINDOW = -15
# Quick rather than small: text as repetitive as logs shrinks to an eighth already.
_LEVEL = 1
# RFC 1950: a window of 32 KiB, no dictionary, quickest compression.
_HEADER = b"\x78\x01"
# RFC 1951: the last block, with nothing in it.
_LAST_BLOCK = b"\x03\x00"
# RFC 1950, section 8.
_ADLER_BASE = 65521


class Piece:
    """Bytes that many streams send."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @cached_property
    def packed(self) -> bytes:
        """The same, as a part of any deflate stream."""
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW_WINDOW)
        return packer.compress(self.raw) + packer.flush(zlib.Z_FULL_FLUSH)

    @cached_property
    def checksum(self) -> int:
        """Adler-32 of the raw bytes."""
        return zlib.adler32(self.raw)


class Packed:
    """One stream of pieces in the zlib format."""

    def __init__(self) -> None:
        self._checksum = zlib.adler32(b"")
        self._header = _HEADER

    def add(self, piece: Piece) -> bytes:
        """Return the bytes to send for the next piece."""
        self._checksum = joined(self._checksum, piece.checksum, len(piece.raw))
        header, self._header = self._header, b""
        return header + piece.packed

    def end(self) -> bytes:
        """Return the last bytes, by which a reader knows that it has all."""
        return self._header + _LAST_BLOCK + self._checksum.to_bytes(4, "big")


def joined(first: int, second: int, second_length: int) -> int:
    """Combine the Adler-32 sums of two byte strings, by both sums and the length of the second.

    It is made of two sums modulo a prime: A of all bytes, beginning with 1, and B of all values
    that A had after each of them.
    """
    a_first, b_first = first & 0xFFFF, first >> 16
    a_second, b_second = second & 0xFFFF, second >> 16
    a_joined = (a_first + a_second - 1) % _ADLER_BASE
    # Within the second every A is higher than it was counted, by what A was before, less the 1.
    b_joined = (b_first + b_second + second_length * (a_first - 1)) % _ADLER_BASE
    return b_joined << 16 | a_joined


def takes_deflate(accept_encoding: str) -> bool:
    """Whether the header of a request names it, and does not rule it out (RFC 9110, 12.5.3)."""
    for each in accept_encoding.lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() == "deflate":
            digits = weight.strip().removeprefix("q=").strip()
            return digits.strip("0.") != "" if digits else True
    return False
