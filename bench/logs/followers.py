"""Many readers of live logs in one process, and how old lines are when they arrive.

`python -m bench.logs.followers` asks for streams and prints one JSON line. Only some of the readers
look at what they get; the others take it from the socket, as a reader's kernel does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from functools import partial
from urllib.parse import urlsplit

from bench.measure import percentile

# What `bench.logs.talking` puts at the begin of each line: seconds since 1970.
_STAMP = re.compile(rb"at=(\d{10}\.\d{6}) ")
_STAMP_BYTES = 24
MOST_WATCHING = 50
# All streams at once would measure how they are opened.
_OPENED_AT_ONCE = 20


class Reader(asyncio.Protocol):
    """One stream. `ages`: of every line, when it came; None where nobody looks."""

    def __init__(self, request: bytes, *, watches: bool) -> None:
        self._request = request
        self._rest = b""
        self.ages: list[tuple[float, float]] | None = [] if watches else None
        self.received = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Note how old each line is."""
        now = time.time()
        if not self.received:
            if not data.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(data[:300])
            self.opened.set_result(None)
        self.received += len(data)
        if self.ages is None:
            return
        data = self._rest + data
        end = 0
        for found in _STAMP.finditer(data):
            self.ages.append((now, now - float(found[1])))
            end = found.end()
        self._rest = data[max(end, len(data) - _STAMP_BYTES) :]

    def connection_lost(self, error: Exception | None) -> None:
        """A stream that ends is a fault: no job ends here."""
        self.is_lost = True


def _same(reader: Reader) -> Reader:
    return reader


async def follow(options: argparse.Namespace) -> dict[str, float]:
    """Open the streams, wait, and say what was seen."""
    url = urlsplit(options.url)
    loop = asyncio.get_running_loop()
    every = max(1, options.count // MOST_WATCHING)
    readers: list[Reader] = []
    for number in range(options.count):
        job = options.jobs[number % len(options.jobs)]
        request = (
            f"GET /api/v1/projects/{options.project}/jobs/{job}/logs/stream?tail=0 HTTP/1.1\r\n"
            f"Host: {url.netloc}\r\nAuthorization: Bearer {options.token}\r\n\r\n"
        ).encode()
        reader = Reader(request, watches=number % every == 0)
        readers.append(reader)
        await loop.create_connection(partial(_same, reader), url.hostname, url.port)
        if number >= _OPENED_AT_ONCE:
            await readers[number - _OPENED_AT_ONCE].opened
    await asyncio.gather(*(reader.opened for reader in readers))
    begin = time.time() + options.warm_up
    await asyncio.sleep(options.warm_up + options.seconds)
    end = begin + options.seconds
    watching = [reader.ages for reader in readers if reader.ages is not None]
    ages = [age for each in watching for at, age in each if begin <= at < end]
    if any(reader.is_lost for reader in readers) or not ages:
        raise RuntimeError(f"{sum(each.is_lost for each in readers)} streams ended")
    return {
        "p50": percentile(ages, 50),
        "p99": percentile(ages, 99),
        "most": max(ages),
        "lines_per_s": len(ages) / len(watching) / options.seconds,
        "mb_per_s": sum(reader.received for reader in readers) / 1e6 / (time.time() - begin),
    }


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--jobs", type=int, nargs="+", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    print(json.dumps(asyncio.run(follow(parser.parse_args()))))


if __name__ == "__main__":
    main()
