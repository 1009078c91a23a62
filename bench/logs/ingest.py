"""The lines a second that the portal ingests, all of it on one core, PostgreSQL included.

`python -m bench.logs.ingest`. This program posts prepared requests from another core.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

from bench.logs import copying, ground
from bench.logs.ground import RANK, LogGround, Talker
from bench.logs.lines import Runner, texts
from bench.logs.posting import CONNECTIONS, Connection
from bench.measure import Peer, figures, median, report, say

PORTAL_CORE, OWN_CORE = 0, 1
# One job: a program without pauses, whose runner posts as much as it may. A hundred: what each
# has printed in a second when together they print 100,000 lines in one.
LINES_OF_ONE, LINES_OF_MANY = 5000, 1000
JOBS = 100
ROUNDS = 5
# Requests of each job in one round.
BODIES_OF_ONE, BODIES_OF_MANY = 40, 2


def one_job(place: LogGround, rounds: int, bodies: int) -> list[float]:
    """Measure the lines a second of one job, in each round."""
    talker = place.start(1)[0]
    runner, found = Runner(), []
    connection = Connection(place)
    source = texts(rounds * bodies * LINES_OF_ONE)
    for _ in range(rounds):
        posts = [runner.body(list(islice(source, LINES_OF_ONE))) for _ in range(bodies)]
        connection.close()
        began = time.monotonic()
        for body in posts:
            acked = connection.post(talker, body)
        took = time.monotonic() - began
        assert acked[str(RANK)] == runner.written
        found.append(bodies * LINES_OF_ONE / took)
        say(f"one job: {found[-1]:9,.0f} lines/s")
    return found


def many_jobs(place: LogGround, rounds: int, bodies: int) -> list[float]:
    """Measure the lines a second of a hundred jobs at once, in each round."""
    talkers = place.start(JOBS)
    runners = [Runner() for _ in talkers]
    connections = [Connection(place) for _ in range(CONNECTIONS)]
    source = texts(rounds * bodies * JOBS * LINES_OF_MANY)
    found = []
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        for _ in range(rounds):
            shares: list[list[tuple[Talker, bytes]]] = [[] for _ in connections]
            for _ in range(bodies):
                for number, (talker, runner) in enumerate(zip(talkers, runners, strict=True)):
                    body = runner.body(list(islice(source, LINES_OF_MANY)))
                    shares[number % CONNECTIONS].append((talker, body))
            for connection in connections:
                connection.close()
            began = time.monotonic()
            list(threads.map(Connection.post_all, connections, shares))
            took = time.monotonic() - began
            found.append(bodies * JOBS * LINES_OF_MANY / took)
            say(f"{JOBS} jobs: {found[-1]:9,.0f} lines/s")
    return found


def main() -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with figures(), on_own_core(), ground.running(PORTAL_CORE) as place:
        measure(place, options.rounds)


@contextmanager
def on_own_core() -> Iterator[None]:
    """Keep this process off the portal's core for the length of the block."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {OWN_CORE})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def measure(place: LogGround, rounds: int) -> None:
    """Measure and report both figures, each just after its peer: the portal seals afterwards."""
    # One round more than is counted: the first one warms up.
    rounds += 1
    bare = copying.copied(place, rounds=rounds, jobs=1, bodies=BODIES_OF_ONE, a_body=LINES_OF_ONE)
    _report("ingest_lines_per_s", one_job(place, rounds, BODIES_OF_ONE), bare)
    bare = copying.copied(
        place, rounds=rounds, jobs=JOBS, bodies=BODIES_OF_MANY, a_body=LINES_OF_MANY
    )
    _report("ingest_100_jobs_lines_per_s", many_jobs(place, rounds, BODIES_OF_MANY), bare)


def _report(figure: str, found: list[float], bare: list[float]) -> None:
    peer = Peer(copying.PEER, median(bare[1:]))
    values = found[1:]
    report(figure, median(values), "lines/s", peer=peer, spread=(min(values), max(values)))


if __name__ == "__main__":
    main()
