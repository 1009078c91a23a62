"""The lag of the reconcilers while thousands of jobs run and a thousand a minute are submitted.

`python -m bench.schedule.lag`. A whole portal, embedded, with nodes without machines. For each job
that is submitted: how long after the earliest possible time the portal started it, showed it as
running, closed it when its program had ended, and released its machines. All times are those that
the portal itself recorded, or that a runner reported to it.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import bare_process
from bench.logs.ground import LogGround, running
from bench.measure import Peer, figures, median, percentile, report, say
from bench.own_portal import OwnPortal
from bench.schedule.ground import NODES, Owners, fill_running
from bench.schedule.runners import speaking

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from jobs.backends.base import LaunchRequest
    from jobs.backends.fake.backend import FakeBackend
    from jobs.models import Attempt, Cluster

NAME = "short"
SPEC = {"name": NAME, "run": "true", "resources": {"infra": "fake"}}
# Seconds: of a job's machines to come up, of its program, and the longest wait for the last one.
UP_S, RUN_S, LIMIT_S = 1.0, 5.0, 600.0
# An answer may take long on a busy machine: waiting for it must not keep others from asking.
SUBMITTERS = 4
# The interval at which a runner gives a sign of life.
SIGN_OF_LIFE_S = 4.0
# The peer takes two milliseconds each: seldom enough to be no load.
EMPTY_PROCESS_EVERY_S = 1.0
# From the earliest possible time to that of the portal's reaction: see `_moments`.
LAGS = ("start", "up", "end", "teardown")


@contextmanager
def busy_portal(jobs: int) -> Iterator[LogGround]:
    """Run a portal with `jobs` running jobs of two nodes, whose runners report that they live."""
    with running() as ground:
        fake = _fill(ground.portal.home.path, jobs)
        done = threading.Event()
        living = threading.Thread(target=_live_on, args=(done,))
        living.start()
        try:
            with speaking(ground, fake, RUN_S):
                yield ground
        finally:
            done.set()
            living.join()


def _fill(home: Path, jobs: int) -> FakeBackend:
    # Models only after the set-up.
    from django.db import transaction  # noqa: PLC0415

    from jobs.actions.attempts.note_seen import note_seen  # noqa: PLC0415
    from jobs.backends.fake.backend import FakeBackend, FakePlan  # noqa: PLC0415
    from jobs.models import Attempt  # noqa: PLC0415

    fake = FakeBackend(home / "fake")
    fake.set_capacity(4 * NODES)
    fake.set_plan(FakePlan(start_s=UP_S, run_s=RUN_S), NAME)
    # At once: reconcilers would take a job whose machines are not there yet for one that lost them.
    with transaction.atomic():
        fill_running(Owners(dict.fromkeys(range(5), 1.0)), jobs, nodes=2)
        # Fetched in small parts: PostgreSQL ends a transaction that is idle for long.
        for attempt in Attempt.objects.select_related("job", "cluster").iterator(chunk_size=200):
            if attempt.cluster is not None:
                fake.launch(_launch_of(attempt, attempt.cluster))
                seen = fake.observe(attempt.cluster.name, attempt_id=attempt.pk).seen
                if seen is not None:
                    # As it was when each cluster came up: else the first sweep writes all rows.
                    note_seen(attempt.cluster, seen)
    say(f"{jobs:,} jobs run")
    return fake


def _launch_of(attempt: Attempt, cluster: Cluster) -> LaunchRequest:
    from jobs.backends.base import LaunchRequest  # noqa: PLC0415

    return LaunchRequest(
        cluster_name=cluster.name,
        project_slug="",
        job_id=attempt.job_id,
        job_name=attempt.job.name,
        attempt_id=attempt.pk,
        attempt_number=attempt.number,
        spec=attempt.job.spec,
        num_nodes=cluster.num_nodes,
        portal_url="",
        token="",
    )


def _live_on(done: threading.Event) -> None:
    """Record signs of life of the running jobs, as their runners' frames would."""
    from django.db import connection  # noqa: PLC0415

    from jobs.ground import clock  # noqa: PLC0415
    from jobs.models import Attempt  # noqa: PLC0415

    try:
        mine = list(Attempt.objects.open().values_list("pk", flat=True))
        while True:
            now = clock.now()
            Attempt.objects.filter(pk__in=mine).update(last_seen_at=now, contacted_at=now)
            if done.wait(SIGN_OF_LIFE_S):
                return
    finally:
        connection.close()


def submit(portal: OwnPortal, a_minute: int, minutes: float) -> list[int]:
    """Submit at a steady rate, however long an answer takes; return the ids of the jobs."""
    began = time.monotonic()

    def submit_one(place: int) -> int:
        time.sleep(max(0.0, began + place * 60 / a_minute - time.monotonic()))
        return portal.client.submit(portal.project, SPEC).id

    with ThreadPoolExecutor(SUBMITTERS) as people:
        numbers = list(people.map(submit_one, range(int(a_minute * minutes))))
    took = time.monotonic() - began
    say(f"{len(numbers):,} jobs submitted in {took:.0f} s")
    if took > 1.05 * 60 * minutes:
        raise RuntimeError("the portal took fewer submissions a minute than it was to")
    return numbers


def lags_of(numbers: Sequence[int]) -> dict[str, list[float]]:
    """Return the seconds by which each step of the jobs was late, once all are released."""
    from jobs.models import Attempt  # noqa: PLC0415

    deadline = time.monotonic() + LIMIT_S
    attempts = Attempt.objects.filter(job__in=numbers)
    gone = attempts.filter(cluster__gone_at__isnull=False, job__ended_at__isnull=False)
    while gone.count() < len(numbers):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(numbers) - gone.count()} jobs are not over")
        time.sleep(0.5)
    if attempts.exclude(job__status="SUCCEEDED").exists() or attempts.count() > len(numbers):
        raise RuntimeError("not every job succeeded at once")
    found: dict[str, list[float]] = {lag: [] for lag in LAGS}
    for moments in _moments(attempts):
        for lag, due, done in zip(LAGS, moments[::2], moments[1::2], strict=True):
            if due is not None and done is not None:
                found[lag].append((done - due).total_seconds())
    return found


def _moments(attempts: QuerySet[Attempt]) -> Iterator[tuple[datetime | None, ...]]:
    """Yield the times of each attempt in pairs of a cause and the portal's reaction to it.

    Submitted, started; program began, job runs; program ended, job ended; released, terminated.
    """
    from jobs.models import JobEvent  # noqa: PLC0415

    runs = JobEvent.objects.filter(attempt__in=attempts, new_status="RUNNING")
    running_at = dict(runs.values_list("attempt", "at"))
    for attempt in attempts.select_related("job", "cluster"):
        job, cluster = attempt.job, attempt.cluster
        yield (
            job.created_at,
            attempt.created_at,
            attempt.run_started_at,
            running_at.get(attempt.pk),
            attempt.ended_at,
            job.ended_at,
            None if cluster is None else cluster.release_requested_at,
            None if cluster is None else cluster.gone_at,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--running", type=int, default=5000)
    parser.add_argument("--a-minute", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=3.0)
    options = parser.parse_args(arguments)
    with figures():
        measure(options.running, options.a_minute, options.minutes)


def measure(jobs: int, a_minute: int, minutes: float) -> None:
    """Submit to a portal on which `jobs` jobs run, and report how late it was."""
    with (
        busy_portal(jobs) as ground,
        bare_process.started_steadily(EMPTY_PROCESS_EVERY_S) as bare_s,
    ):
        found = lags_of(submit(ground.portal, a_minute, minutes))
    for lag, seconds in found.items():
        say(
            f"  {lag}: median {median(seconds):.2f} s, p99 {percentile(seconds, 99):.2f} s, "
            f"most {max(seconds):.2f} s"
        )
    every = [seconds for lag in found.values() for seconds in lag]
    for percent in (50, 99):
        peer = Peer(bare_process.EMPTY, percentile(bare_s, percent))
        report(f"lag_p{percent}_s", percentile(every, percent), "s", peer=peer)


if __name__ == "__main__":
    main()
