"""The streams: a job's log as SkyPilot's tail returns it, and a request's own log."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from tests.sky_stub.cloud import Cloud, need_up
from tests.sky_stub.jobs import FINAL, Jobs
from tests.sky_stub.requests import Request

LOOK_S = 0.03
HEARTBEAT_S = 30.0
HEARTBEAT = f"<sky-payload>{json.dumps('<heartbeat></heartbeat>')}</sky-payload>\n".encode()
WAITING = b"INFO: Waiting 1s for the logs to be written...\n"
SUCCEEDED, FAILED, NOT_FINISHED, NOT_FOUND, CANCELLED = 0, 100, 101, 102, 103
EXIT_CODES = {"SUCCEEDED": SUCCEEDED, "CANCELLED": CANCELLED}


def job_log(
    cloud: Cloud, cluster: str, number: int | None, tail: int, follow: bool
) -> Generator[bytes, None, int]:
    """Yield pieces of a job's log, b"" when nothing is new; return SkyPilot's exit code at the end.

    SkyError if the cluster can't be queried. An unfinished last line is left out.
    """
    need_up(cloud, cluster, "tail logs")
    jobs = Jobs(cloud, cluster)
    number = number or max(jobs.numbers(), default=0)
    record = jobs.record(number)
    if record is None:
        yield f"Job {number} not found (see `sky queue`).\n".encode()
        return NOT_FOUND
    path = Path(record["folder"]) / "run.log"
    if not path.exists():
        yield WAITING
    while not path.exists() and not jobs.is_over(number):
        yield b""
        time.sleep(LOOK_S)
    yield from _lines(path, jobs, number, (tail, follow))
    status = (jobs.record(number) or {}).get("status", "FAILED")
    if status not in FINAL:
        return NOT_FINISHED
    yield f"\x1b[0m\x1b[32m✓ Job finished (status: {status}).\x1b[0m\x1b[0m\n".encode()
    return EXIT_CODES.get(status, FAILED)


def request_log(request: Request) -> Iterator[bytes]:
    """Yield a request's own log to its end."""
    sent = 0
    while True:
        is_done = request.is_done.is_set()
        lines, sent = request.lines[sent:], len(request.lines)
        yield "".join(lines).encode()
        if is_done:
            return
        request.is_done.wait(LOOK_S)


def _lines(path: Path, jobs: Jobs, number: int, bounds: tuple[int, bool]) -> Iterator[bytes]:
    tail, follow = bounds
    heard_at = time.monotonic()
    try:
        log = path.open("rb")
    except FileNotFoundError:
        return
    with log:
        if tail:
            whole = log.read()
            log.seek(_start_of_tail(whole, tail))
        while True:
            is_over = not follow or jobs.is_over(number)
            data = log.read()
            end = data.rfind(b"\n") + 1
            log.seek(end - len(data), 1)
            if data[:end]:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > HEARTBEAT_S:
                heard_at = time.monotonic()
                yield HEARTBEAT
            yield data[:end]
            if is_over:
                return
            time.sleep(LOOK_S)


def _start_of_tail(whole: bytes, tail: int) -> int:
    """Return the offset at which the last `tail` lines begin."""
    lines = whole.splitlines(keepends=True)
    return len(whole) - sum(map(len, lines[-tail:]))
