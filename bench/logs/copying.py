"""The bare way of log lines to disk: a COPY of the same rows into the portal's PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import Any

import psycopg

from bench.logs.ground import RANK, LogGround
from bench.logs.lines import texts
from bench.logs.posting import CONNECTIONS
from bench.measure import say

PEER = "COPY of the same rows into PostgreSQL"
_TABLE = """\
CREATE TABLE IF NOT EXISTS bench_line
(job bigint, rank integer, seq bigint, at double precision, stream text, line text)"""
_COPY = "COPY bench_line FROM STDIN"


def copied(place: LogGround, *, rounds: int, jobs: int, bodies: int, a_body: int) -> list[float]:
    """Return lines a second of each round; one transaction a body, as the portal has one.

    Each of so many jobs has `bodies` of `a_body` lines, dealt over as many connections as the
    portal's own figure uses.
    """
    source = texts(rounds * jobs * bodies * a_body)
    url, found = place.portal.home.postgres.url(), []
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(psycopg.connect(url, autocommit=True))
            for _ in range(min(jobs, CONNECTIONS))
        ]
        threads = stack.enter_context(ThreadPoolExecutor(len(sessions)))
        sessions[0].execute(_TABLE)
        for _ in range(rounds):
            shares: list[list[bytes]] = [[] for _ in sessions]
            for number in range(jobs * bodies):
                lines = list(islice(source, a_body))
                shares[number % len(sessions)].append(rows(number % jobs, lines))
            began = time.monotonic()
            list(threads.map(_copy_all, sessions, shares))
            took = time.monotonic() - began
            sessions[0].execute("TRUNCATE bench_line")
            found.append(jobs * bodies * a_body / took)
            say(f"{PEER}: {found[-1]:9,.0f} lines/s")
        sessions[0].execute("DROP TABLE bench_line")
    return found


def rows(job: int, lines: Sequence[str]) -> bytes:
    """Return the rows of some lines as COPY reads them: no line has a tab or a backslash."""
    now = time.time()
    numbered = enumerate(lines, start=1)
    return "".join(
        f"{job}\t{RANK}\t{seq}\t{now}\tstdout\t{line}\n" for seq, line in numbered
    ).encode()


def _copy_all(session: psycopg.Connection[Any], bodies: Sequence[bytes]) -> None:
    for body in bodies:
        with session.cursor().copy(_COPY) as copy:
            copy.write(body)
