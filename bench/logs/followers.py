"""Many readers of live logs in one process, and how old lines are when they arrive.

`python -m bench.logs.followers` opens streams and prints one JSON line. Only some of the readers
parse what they get; the others only take it from the socket, as a reader's kernel does. They take
the portal's streams compressed, as browsers and `mportal logs -f` do, and Ray's plain, as Ray's
client does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bench.cpu_time import cpu_seconds
from bench.logs.readers import PortalReader, RayReader, Reader, summary

MOST_WATCHING = 50
# Opening all streams at once would disturb what is measured.
_OPENED_AT_ONCE = 20
# A stream that is not open after this many seconds never will be.
PATIENCE_S = 60.0


def requests(options: argparse.Namespace) -> Iterator[bytes]:
    """Yield the HTTP request of each follower; followers are distributed over the jobs."""
    host = urlsplit(options.url).netloc
    for number in range(options.count):
        job = options.jobs[number % len(options.jobs)]
        if options.of == "ray":
            yield (
                f"GET /api/jobs/{job}/logs/tail HTTP/1.1\r\nHost: {host}\r\n"
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: Zm9sbG93ZXIgb2YgbG9ncw==\r\n\r\n"
            ).encode()
        else:
            yield (
                f"GET /api/v1/projects/{options.project}/jobs/{job}/logs/stream?tail=0 HTTP/1.1\r\n"
                f"Host: {host}\r\nAuthorization: Bearer {options.token}\r\n"
                "Accept-Encoding: gzip, deflate\r\n\r\n"
            ).encode()


def _same(reader: Reader) -> Reader:
    return reader


async def opened(options: argparse.Namespace) -> list[Reader]:
    """Open the streams; they are fewer than requested where a server serves no more."""
    url = urlsplit(options.url)
    kind: type[Reader] = RayReader if options.of == "ray" else PortalReader
    every = max(1, options.count // MOST_WATCHING)
    readers: list[Reader] = []
    for number, request in enumerate(requests(options)):
        reader = kind(request, watches=number % every == 0)
        readers.append(reader)
        loop = asyncio.get_running_loop()
        await loop.create_connection(partial(_same, reader), url.hostname, url.port)
        if number >= _OPENED_AT_ONCE and not await _open(readers[number - _OPENED_AT_ONCE]):
            break
    else:
        await _open(*readers)
    for reader in readers:
        if not reader.opened.done():
            reader.close()
    found = [reader for reader in readers if reader.opened.done()]
    for reader in found:
        reader.opened.result()
    return found


async def _open(*readers: Reader) -> bool:
    """Whether all streams are open within PATIENCE_S."""
    _, waiting = await asyncio.wait({each.opened for each in readers}, timeout=PATIENCE_S)
    return not waiting


async def follow(options: argparse.Namespace) -> dict[str, float]:
    """Open the streams, wait, and return the summary of what they received."""
    readers = await opened(options)
    if options.go is not None:
        options.go.touch()
    await asyncio.sleep(options.warm_up)
    begin, used_s = time.time(), cpu_seconds(options.server_pid)
    await asyncio.sleep(options.seconds)
    used_s = cpu_seconds(options.server_pid) - used_s
    if lost := sum(reader.is_lost for reader in readers):
        raise RuntimeError(f"{lost} of {len(readers)} streams ended")
    watching = [reader.ages for reader in readers if reader.ages is not None]
    return {
        **summary(watching, begin, options.seconds),
        "mb_per_s": sum(reader.received for reader in readers) / 1e6 / (time.time() - begin),
        "followers": len(readers),
        "server_cpu": used_s / options.seconds,
    }


def main() -> None:
    """Open the streams and print what they received as a JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", choices=("portal", "ray"), default="portal")
    parser.add_argument("--url", required=True)
    parser.add_argument("--token")
    parser.add_argument("--project")
    parser.add_argument("--jobs", nargs="+", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--server-pid", type=int, default=0, help="whose CPU time to measure")
    parser.add_argument("--go", type=Path, help="a file to make once all streams are open")
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    print(json.dumps(asyncio.run(follow(parser.parse_args()))))


if __name__ == "__main__":
    main()
