"""The stored form of log lines: one line of text each, `<rank> <stream><milliseconds> <text>`.

Blocks of the tail and sealed chunks hold the same text, compressed with Zstandard, so that a
chunk is its blocks put together, and `zstdcat` shows what the portal shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from functools import lru_cache

import msgspec
import zstandard

from monarch_client.runner.vocabulary import streams

BLOCK_BYTES = 64 * 1024
# A line longer than the runner sends in one piece has its code in capitals on all but the last.
CODE_OF_STREAM = {
    streams.STDOUT: "o",
    streams.STDERR: "e",
    streams.SETUP: "s",
    streams.PROVISION: "v",
    streams.PORTAL: "p",
}
_STREAM_OF_CODE = {
    code: (name, more)
    for name, letter in CODE_OF_STREAM.items()
    for code, more in ((letter, False), (letter.upper(), True))
}
# A chunk of the compactor's is 1 MB and some; this only keeps a damaged blob from filling memory.
_MAX_RAW_BYTES = 64 * 1024 * 1024
# How what is kept for good is compressed, in a sixth of the time of zstd's level 12. Lines that are
# alike but for their numbers have no use for matches shorter than six bytes, nor for those far
# behind: whatever is near has a shorter name (5 % less in all). In prose it is the other way
# round (13 % less). So the first of a chunk is tried both ways.
_NEAR, _FAR = (
    zstandard.ZstdCompressionParameters(
        strategy=zstandard.STRATEGY_LAZY2,
        min_match=6,
        target_length=16,
        search_log=1,
        chain_log=18,
        hash_log=hash_log,
        window_log=21,
    )
    for hash_log in (14, 18)
)
_TRIED_BYTES = 128 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\ud800-\udfff\0]")


class LogLine(msgspec.Struct, frozen=True):
    """One line. `number` counts from 1 as lines arrive; `more`: its rank's next piece goes on.

    A dataclass would take five times as long to make, and there are very many.
    """

    number: int
    rank: int
    stream: str
    at_ms: int
    text: str
    more: bool = False

    @property
    def at(self) -> datetime:
        """The time of the line."""
        return moment_of(self.at_ms)

    @property
    def at_iso(self) -> str:
        """The time of the line in ISO 8601, with milliseconds."""
        seconds, rest_ms = divmod(self.at_ms, 1000)
        return f"{_iso_of_second(seconds)}.{rest_ms:03d}Z"


def encoded(rank: int, stream: str, at_ms: int, text: str, *, more: bool = False) -> str:
    """Encode the line as it is stored, without its line end."""
    code = CODE_OF_STREAM[stream]
    if "\n" in text:
        text = text.replace("\n", "\N{SYMBOL FOR NEWLINE}")
    return f"{rank} {code.upper() if more else code}{at_ms} {text}"


def packed(lines: Iterable[str]) -> tuple[bytes, int]:
    """Compress stored lines; return the payload and its size before, line ends included."""
    text = "\n".join(lines)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()
    return zstandard.compress(raw, 1), len(raw) + 1


def compressed_for_good(raw: bytes) -> bytes:
    """Compress `raw` with its size in the header, for content that is written once and kept."""
    near, far = (zstandard.ZstdCompressor(compression_params=each) for each in (_NEAR, _FAR))
    tried = raw[:_TRIED_BYTES]
    is_near = len(near.compress(tried)) < len(far.compress(tried))
    return (near if is_near else far).compress(raw)


def decompressed(payload: bytes) -> bytes:
    """Decompress a payload, without a newline at its end."""
    return zstandard.decompress(payload, max_output_size=_MAX_RAW_BYTES)


def line_of(number: int, stored: str) -> LogLine:
    """Decode the stored line as number `number`."""
    rank, stamp, text = stored.split(" ", 2)
    stream, more = _STREAM_OF_CODE[stamp[0]]
    return LogLine(number, int(rank), stream, int(stamp[1:]), text, more)


@lru_cache(maxsize=64)
def _iso_of_second(seconds: int) -> str:
    return f"{moment_of(seconds * 1000):%Y-%m-%dT%H:%M:%S}"


def moment_of(at_ms: int) -> datetime:
    """Return the time of that many milliseconds after 1970."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def storable(text: str, limit: int) -> str:
    """Convert `text` for a text column: no NUL, no half of a character, at most `limit` long."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text[:limit])
