"""How many lines a second the portal takes in, all of it on one core, PostgreSQL included.

`python -m bench.logs.ingest`. This program posts from another core what it has prepared before.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from bench.logs import ground
from bench.logs.ground import RANK, LogGround, Talker
from bench.logs.lines import Runner, texts
from bench.logs.posting import Connection
from bench.measure import median, report, say

PORTAL_CORE, OWN_CORE = 0, 1
# One job: a program without pauses, whose runner posts as much as it may. A hundred: what each
# has printed in a second when together they print 100,000 lines in one.
LINES_OF_ONE, LINES_OF_MANY = 5000, 1000
JOBS = 100
CONNECTIONS = 8
ROUNDS = 5


def one_job(place: LogGround, rounds: int, bodies: int) -> list[float]:
    """Lines a second of one job, in each round."""
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
    """Lines a second of a hundred jobs at once, in each round."""
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
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {OWN_CORE})
    with ground.running(PORTAL_CORE) as place:
        # One round more than is counted: the first one warms up.
        for figure, found in (
            ("ingest_lines_per_s", one_job(place, options.rounds + 1, 40)[1:]),
            ("ingest_100_jobs_lines_per_s", many_jobs(place, options.rounds + 1, 2)[1:]),
        ):
            report(figure, median(found), "lines/s", spread=(min(found), max(found)))


if __name__ == "__main__":
    main()
