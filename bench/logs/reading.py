"""A log of ten million lines: its first screen, a jump, a search, what it takes on disk and memory.

`python -m bench.logs.reading`. Times are those of requests on loopback, answer read to its end.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import psycopg

from bench.logs import ground
from bench.logs.ground import LogGround, Talker
from bench.logs.lines import Runner, texts
from bench.logs.plain_file import PlainFile
from bench.logs.posting import Connection
from bench.measure import NoPeer, Peer, figures, median, percentile, report, say

LINES = 10_000_000
A_BODY = 5000
A_PAGE = 1000
REPEATS = 20
NEEDLE = "the one and only needle"
# This word is in a hundredth of all lines.
FREQUENT = "was late"
SEAL_LIMIT_S = 600.0
OTHERS_PAUSE_S = 0.05


class Log:
    """One job's log over REST."""

    def __init__(self, place: LogGround, talker: Talker) -> None:
        portal = place.portal
        self._path = f"/api/v1/projects/{portal.project}/jobs/{talker.job_id}"
        self._token = portal.home.admin_token_file.read_text().strip()
        self._url = portal.home.url
        self.client = self._new_client()

    def _new_client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx.Client(base_url=self._url, headers=headers, timeout=120)

    def timed(self, path: str, **query: Any) -> tuple[float, dict[str, Any]]:
        """Request the path and return the seconds until the answer was read, and the answer."""
        began = time.monotonic()
        answer = self.client.get(self._path + path, params=query)
        took = time.monotonic() - began
        answer.raise_for_status()
        content: dict[str, Any] = answer.json()
        return took, content

    def search_all(self, words: str) -> tuple[float, int]:
        """Search the whole log; return the seconds that it took and the number of lines found."""
        began, found, after = time.monotonic(), 0, ""
        while True:
            _, page = self.timed("/logs/search", q=words, after=after, limit=5000)
            found += len(page["results"])
            if page["next"] is None:
                return time.monotonic() - began, found
            after = page["next"]

    def download(self) -> int:
        """Read all of the log as text and return its number of bytes."""
        size = 0
        with self.client.stream("GET", self._path + "/logs/download") as answer:
            for piece in answer.iter_bytes():
                size += len(piece)
        return size

    def others(self, stop: threading.Event) -> list[float]:
        """Measure the seconds that other requests for the job take until `stop`."""
        found = []
        with self._new_client() as client:
            while not stop.wait(OTHERS_PAUSE_S):
                began = time.monotonic()
                client.get(self._path).raise_for_status()
                found.append(time.monotonic() - began)
        return found


def bodies(count: int, plain: PlainFile | None) -> Iterator[bytes]:
    """Yield the whole log as requests, written to `plain` too; its last line has the needle."""
    runner = Runner()
    for lines in _batches(count):
        if plain is not None:
            plain.append(lines)
        yield runner.body(lines)


def _batches(count: int) -> Iterator[list[str]]:
    source = texts(count - 1)
    while lines := list(islice(source, A_BODY)):
        yield lines
    yield [NEEDLE]


_source: Iterator[bytes] = iter(())


def _prepare(count: int, plain: PlainFile | None) -> None:
    global _source  # noqa: PLW0603 - the one thing that this process is for
    _source = bodies(count, plain)


def _next_body(_: int) -> bytes:
    return next(_source)


def write(place: LogGround, talker: Talker, count: int, plain: PlainFile | None = None) -> None:
    """Make the portal ingest a log of `count` lines, and wait until it is sealed."""
    connection = Connection(place)
    total = -(-(count - 1) // A_BODY) + 1
    began = time.monotonic()
    with ProcessPoolExecutor(1, initializer=_prepare, initargs=(count, plain)) as other:
        ahead = [other.submit(_next_body, 0) for _ in range(min(20, total))]
        for number in range(total):
            connection.post(talker, ahead.pop(0).result())
            if number + 20 < total:
                ahead.append(other.submit(_next_body, 0))
    say(f"{count:,} lines written in {time.monotonic() - began:.0f} s")
    _wait_until_sealed(place, talker)
    say(f"sealed after {time.monotonic() - began:.0f} s")


def _wait_until_sealed(place: LogGround, talker: Talker) -> None:
    deadline = time.monotonic() + SEAL_LIMIT_S
    with psycopg.connect(place.portal.home.postgres.url(), autocommit=True) as session:
        while time.monotonic() < deadline:
            row = session.execute(
                "SELECT tail_bytes FROM jobs_loghead WHERE attempt_id = %s", [talker.attempt_id]
            ).fetchone()
            if row is not None and row[0] < 1024 * 1024:
                return
            time.sleep(0.5)
    raise TimeoutError("the log is not sealed")


def stored_ratio(place: LogGround, talker: Talker, text_bytes: int) -> float:
    """Return the bytes on disk, rows included, for each byte of text."""
    with psycopg.connect(place.portal.home.postgres.url()) as session:
        row = session.execute(
            "SELECT sum(stored_bytes + pg_column_size(chunk)) FROM jobs_logchunk AS chunk "
            "WHERE attempt_id = %s",
            [talker.attempt_id],
        ).fetchone()
    assert row is not None
    return float(row[0]) / text_bytes


def look(log: Log, plain: PlainFile, lines: int) -> None:
    """Measure first screens and jumps."""
    first, first_bare = [], []
    for _ in range(REPEATS):
        first.append(log.timed("/logs", before="end", limit=A_PAGE)[0])
        first_bare.append(plain.last_s(A_PAGE))
    _report("first_screen_s", first, Peer("tail of a plain file", median(first_bare)))
    jumps, jumps_bare = [], []
    for number in range(REPEATS):
        line = lines // 2 + number * lines // 50
        jumps.append(log.timed("/logs", after=f"1:{line}", limit=A_PAGE)[0])
        jumps_bare.append(plain.jump_s(line, A_PAGE))
    _report("jump_s", jumps, Peer("sed in a plain file", median(jumps_bare)))


def _report(figure: str, values: list[float], peer: Peer) -> None:
    report(figure, median(values), "s", peer=peer, spread=(min(values), max(values)))


def search(log: Log, plain: PlainFile, lines: int) -> None:
    """Measure the first matches, a search of all of it, and what others notice meanwhile."""
    first, first_bare = [], []
    for _ in range(REPEATS):
        first.append(log.timed("/logs/search", q=FREQUENT, limit=100)[0])
        first_bare.append(plain.first_matches_s(FREQUENT, 100))
    _report("search_first_s", first, Peer("grep of a plain file", median(first_bare)))
    calm = _others_meanwhile(log, lambda: time.sleep(3))
    whole: list[float] = []

    def whole_log() -> None:
        for _ in range(3):
            took, found = log.search_all(NEEDLE)
            assert found == 1, found
            whole.append(took)

    busy = _others_meanwhile(log, whole_log)
    whole_bare = [plain.all_matches_s(NEEDLE) for _ in whole]
    _report("search_all_s", whole, Peer("grep of a plain file", median(whole_bare)))
    report(
        "others_p95_s_while_searching",
        percentile(busy, 95),
        "s",
        peer=Peer("without a search", percentile(calm, 95)),
    )
    took, found = log.search_all(FREQUENT)
    say(f"all {found:,} of {lines:,} lines with {FREQUENT!r}: {took:.2f} s")


def _others_meanwhile(log: Log, work: Any) -> list[float]:
    stop, found = threading.Event(), []
    other = threading.Thread(target=lambda: found.extend(log.others(stop)))
    other.start()
    work()
    stop.set()
    other.join()
    return found


def main() -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    options = parser.parse_args()
    with (
        figures(),
        tempfile.TemporaryDirectory(prefix="mportal-bench-", dir="/tmp") as folder,
        ground.running() as place,
    ):
        measure(place, PlainFile(Path(folder) / "log.txt"), options.lines)


def measure(place: LogGround, plain: PlainFile, lines: int) -> None:
    """Measure and report all figures."""
    small, large = place.start(2)
    write(place, small, lines // 100)
    before = _after_reading(place, small)
    write(place, large, lines, plain)
    log = Log(place, large)
    look(log, plain, lines)
    search(log, plain, lines)
    after = _after_reading(place, large)
    text_bytes = log.download()
    ratio, gzip = stored_ratio(place, large, text_bytes), Peer("gzip", plain.gzip_ratio())
    report("stored_ratio", ratio, "bytes per byte of text", peer=gzip)
    growth = {part: after[part] - before[part] for part in ("web", "follower")}
    say(f"MB before {before}, after {after}; {text_bytes / 1e9:.2f} GB of text")
    reason = NoPeer("no bare program stays up between two reads of a log")
    report("memory_growth_mb", sum(growth.values()), "MB", peer=reason)


def _after_reading(place: LogGround, talker: Talker) -> dict[str, float]:
    """Return the portal's memory after a log has been downloaded and searched."""
    log = Log(place, talker)
    log.download()
    log.search_all(NEEDLE)
    return place.portal.memory_mb()


if __name__ == "__main__":
    main()
