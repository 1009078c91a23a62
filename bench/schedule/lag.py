"""How late the reconcilers are while thousands of jobs run and a thousand a minute are submitted.

`python -m bench.schedule.lag`. A whole portal, embedded, with nodes without machines. Of each job
that is submitted: how long after the portal could have, it started it, closed it when its program
had ended, and gave its machines back. All moments are those that the portal itself wrote down.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import django

from bench.measure import median, percentile, report, say
from bench.own_portal import OwnPortal, running
from bench.schedule.ground import NODES, SETTINGS, Owners, fill_running

if TYPE_CHECKING:
    from jobs.backends.base import LaunchRequest
    from jobs.models import Attempt, Cluster

NAME = "short"
SPEC = {"name": NAME, "run": "true", "resources": {"infra": "fake"}}
# Seconds: of a job's machines to come up, of its program, and the longest wait for the last one.
UP_S, RUN_S, LIMIT_S = 1.0, 5.0, 120.0
# As often as a runner gives a sign of life.
SIGN_OF_LIFE_S = 4.0
LAGS = ("start", "end", "teardown")


@contextmanager
def busy_portal(jobs: int) -> Iterator[OwnPortal]:
    """A portal on which `jobs` jobs of two nodes run, whose runners say that they live."""
    environment = {
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "BENCH_FAKE_BACKEND": "{home}/fake",
        "MPORTAL_SKYPILOT": "off",
    }
    with running(None, **environment) as portal:
        home = portal.home.path
        os.environ.update({key: value.format(home=home) for key, value in environment.items()})
        os.environ["MPORTAL_HOME"] = str(home)
        django.setup()
        _fill(home, jobs)
        done = threading.Event()
        living = threading.Thread(target=_live_on, args=(done,))
        living.start()
        try:
            yield portal
        finally:
            done.set()
            living.join()


def _fill(home: Path, jobs: int) -> None:
    # Models only after the set-up.
    from jobs.backends.fake import FakeBackend, FakePlan  # noqa: PLC0415
    from jobs.models import Attempt, FollowLease  # noqa: PLC0415

    backend = FakeBackend(home / "fake")
    backend.set_capacity(4 * NODES)
    weights = dict.fromkeys(range(5), 1.0)
    fill_running(Owners(weights), jobs, nodes=2)
    attempts = list(Attempt.objects.select_related("job", "cluster"))
    for attempt in attempts:
        if attempt.cluster is not None:
            backend.launch(_launch_of(attempt, attempt.cluster))
    # Their runners push, which is no part of this: nobody fetches from them.
    for_ever = attempts[0].created_at + timedelta(days=1)
    FollowLease.objects.bulk_create(
        FollowLease(attempt=attempt, owner="bench", expires_at=for_ever) for attempt in attempts
    )
    backend.set_plan(FakePlan(start_s=UP_S, run_s=RUN_S), NAME)
    say(f"{len(attempts):,} jobs run")


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
    """Signs of life of those that run, as their runners' frames would bring them."""
    from django.db import connection  # noqa: PLC0415

    from jobs import clock  # noqa: PLC0415
    from jobs.models import Attempt  # noqa: PLC0415

    try:
        while True:
            mine = Attempt.objects.filter(follow_lease__owner="bench")
            mine.update(last_seen_at=clock.now(), contacted_at=clock.now())
            if done.wait(SIGN_OF_LIFE_S):
                return
    finally:
        connection.close()


def submit(portal: OwnPortal, a_minute: int, minutes: float) -> list[int]:
    """Submit steadily; the numbers of the jobs."""
    began, numbers = time.monotonic(), []
    for place in range(int(a_minute * minutes)):
        time.sleep(max(0.0, began + place * 60 / a_minute - time.monotonic()))
        numbers.append(portal.client.submit(portal.project, SPEC).id)
    took = time.monotonic() - began
    say(f"{len(numbers):,} jobs submitted in {took:.0f} s")
    return numbers


def lags_of(numbers: Sequence[int]) -> dict[str, list[float]]:
    """Seconds by which each of them was late, once the machines of all are gone."""
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
    rows = attempts.values_list(
        "job__created_at",
        "created_at",
        "ended_at",
        "job__ended_at",
        "cluster__release_requested_at",
        "cluster__gone_at",
    )
    found: dict[str, list[float]] = {lag: [] for lag in LAGS}
    for row in rows:
        for lag, due, done in zip(LAGS, row[::2], row[1::2], strict=True):
            if due is not None and done is not None:
                found[lag].append((done - due).total_seconds())
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill, submit, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--running", type=int, default=5000)
    parser.add_argument("--a-minute", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=3.0)
    options = parser.parse_args(arguments)
    with busy_portal(options.running) as portal:
        found = lags_of(submit(portal, options.a_minute, options.minutes))
    for lag, seconds in found.items():
        say(
            f"  {lag}: median {median(seconds):.2f} s, p99 {percentile(seconds, 99):.2f} s, "
            f"most {max(seconds):.2f} s"
        )
    every = [seconds for lag in found.values() for seconds in lag]
    report("lag_p50_s", median(every), "s")
    report("lag_p99_s", percentile(every, 99), "s")


if __name__ == "__main__":
    main()
