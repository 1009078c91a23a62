"""Readers of live logs, which note how old each line is when it comes."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import Sequence

from bench.logs.talk import READY
from bench.measure import percentile

# What `bench.logs.talk` puts at the begin of each line: seconds since 1970.
_STAMP = re.compile(rb"at=(\d{10}\.\d{6}) ")
_STAMP_BYTES = 24
_CHUNK = re.compile(rb"[0-9a-f]+")
_READY = READY.encode()


class Ages:
    """The arrival time of every line, and its age in seconds at that time."""

    def __init__(self) -> None:
        self.found: list[tuple[float, float]] = []
        self._rest = b""

    def take(self, data: bytes, now: float) -> None:
        """Parse the next piece of the stream, which arrived at `now`; it may end within a line."""
        data, end = self._rest + data, 0
        for stamp in _STAMP.finditer(data):
            self.found.append((now, now - float(stamp[1])))
            end = stamp.end()
        self._rest = data[max(end, len(data) - _STAMP_BYTES) :]


def summary(readers: Sequence[Ages], begin: float, seconds: float) -> dict[str, float]:
    """Measure what arrived within `seconds`: ages, and lines a second of one reader.

    `silent`: readers that received nothing. RuntimeError: no reader received a line.
    """
    each = [[age for at, age in ages.found if 0 <= at - begin < seconds] for ages in readers]
    every = [age for found in each for age in found]
    if not every:
        raise RuntimeError(f"no line came to {len(readers)} readers")
    return {
        "p50": percentile(every, 50),
        "p99": percentile(every, 99),
        "most": max(every),
        "lines_per_s": len(every) / len(readers) / seconds,
        "silent": sum(not found for found in each),
    }


class Reader(asyncio.Protocol):
    """One stream over HTTP. `ages` is None where the stream is not parsed."""

    answer = b"HTTP/1.1 200"

    def __init__(self, request: bytes, *, watches: bool) -> None:
        self._request = request
        self.ages = Ages() if watches else None
        self.received = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_lost = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request the stream."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Note how old each line is."""
        now = time.time()
        if not self.received and not data.startswith(self.answer):
            self.opened.set_exception(RuntimeError(data[:300]))
        self.received += len(data)
        if not self.opened.done() and self.is_open_after(data):
            self.opened.set_result(None)
        if self.ages is not None:
            self.ages.take(self.unpacked(data), now)

    def is_open_after(self, data: bytes) -> bool:
        """Whether new lines will come from now on."""
        return True

    def unpacked(self, data: bytes) -> bytes:
        """Return the text in received `data`."""
        return data

    def connection_lost(self, error: Exception | None) -> None:
        """Record the end of the stream as a fault: no job ends during the measurement."""
        self.is_lost = True

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class PortalReader(Reader):
    """A stream of the portal: a chunked, compressed answer."""

    def __init__(self, request: bytes, *, watches: bool) -> None:
        super().__init__(request, watches=watches)
        self._head = b""
        self._unpacker = zlib.decompressobj()

    def unpacked(self, data: bytes) -> bytes:
        """Decompress the chunks that have arrived whole."""
        data, raw = self._head + data, b""
        while (end := data.find(b"\r\n")) >= 0:
            if not _CHUNK.fullmatch(data, 0, end):
                # A line of the answer's head.
                data = data[end + 2 :]
                continue
            after = end + 2 + int(data[:end], 16) + 2
            if len(data) < after:
                break
            raw += self._unpacker.decompress(data[end + 2 : after - 2])
            data = data[after:]
        self._head = data
        return raw


class RayReader(Reader):
    """A stream of Ray: a websocket whose messages are ten lines of plain text each.

    The heads of the messages are left in the data: none is within a line.
    """

    answer = b"HTTP/1.1 101"

    def is_open_after(self, data: bytes) -> bool:
        """Check for the job's first line: Ray accepts a connection before it has asked the node."""
        return _READY in data
