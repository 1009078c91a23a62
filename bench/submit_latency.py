"""The time from submitting a job to its first line: Monarch jobs, and `ray job submit`.

`make bench NAME=submit_latency`. What each figure means is in bench/README.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime

from bench import bare_process, own_portal, ray_peer
from bench.measure import (
    Peer,
    figures,
    median,
    percentile,
    report,
    say,
    wall_time_of_ticks,
)
from monarch_client.rest.client import PortalClient
from monarch_client.rest.stream import Follower, NewLines
from monarch_client.wire.attempts import Attempt

IDLE_S = 20.0
JOB_LIMIT_S = 120.0
# Parts of the portal that are no Python.
SERVERS = frozenset({"postgres", "redis"})
STARTED = "runner-started "
# The driver says `hi` at once; then it looks up when the kernel started the runner above it.
SPEC = f"""\
name: latency
run: |
  echo hi
  pid=$PPID
  while ! tr '\\0' ' ' < /proc/$pid/cmdline | grep -q -- '--rank'; do
    pid=$(awk '/^PPid:/ {{print $2}}' /proc/$pid/status)
  done
  sed 's/.*) //' /proc/$pid/stat | awk '{{print "{STARTED}" $20}}'
portal:
  meshes: {{hosts: 1}}
"""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The seconds of each round: a job here, one of Ray's if Ray is measured, a bare process."""

    ours: list[Run] = field(default_factory=list)
    rays: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Run:
    """One job: seconds from the POST to its first line, and to the start of its runner."""

    first_line_s: float
    overhead_s: float
    attempt: Attempt
    posted_at: float


def run_job(client: PortalClient, project: str) -> Run:
    """Submit one job and follow it to its end."""
    posted_at, posted = time.time(), time.monotonic()
    job = client.submit(project, SPEC)
    first_line_s, started_at = None, None
    for event in Follower(client, project, job.id).events():
        for line in event.lines if isinstance(event, NewLines) else ():
            if line.stream == "stdout" and first_line_s is None:
                first_line_s = time.monotonic() - posted
            if line.text.startswith(STARTED):
                started_at = start_of_runner(int(line.text.removeprefix(STARTED)))
    if first_line_s is None or started_at is None:
        raise RuntimeError(f"job {job.id} ended without its lines: {client.job(project, job.id)}")
    attempt = wait_until_gone(client, project, job.id)
    return Run(first_line_s, started_at - posted_at, attempt, posted_at)


def start_of_runner(ticks: int) -> float:
    """Return the wall-clock time of a process start that the kernel counts from the boot."""
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return wall_time_of_ticks(ticks, now=time.time(), since_boot=since_boot)


def wait_until_gone(client: PortalClient, project: str, job_id: int) -> Attempt:
    """Return the job's attempt, once nothing is left of it that could disturb the next one."""
    deadline = time.monotonic() + JOB_LIMIT_S
    while time.monotonic() < deadline:
        attempt = client.attempts(project, job_id)[0]
        teardown = [stage for stage in attempt.stages if stage.name == "teardown"]
        if teardown and teardown[0].ended_at is not None:
            return attempt
        time.sleep(0.1)
    raise TimeoutError(f"job {job_id} was not taken down")


def breakdown(runs: Sequence[Run]) -> str:
    """Describe where the time went, in medians."""
    rows = {"runner process": median(run.overhead_s for run in runs)}
    for name in ("launch", "setup", "workers", "run"):
        moments = [(stage_start(run.attempt, name), run.posted_at) for run in runs]
        known = [start - posted for start, posted in moments if start is not None]
        if known:
            rows[f"{name} begins"] = median(known)
    rows["first line"] = median(run.first_line_s for run in runs)
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in rows.items())


def stage_start(attempt: Attempt, name: str) -> float | None:
    """Return the time at which a stage began, in seconds since 1970."""
    moments: list[datetime | None] = [s.started_at for s in attempt.stages if s.name == name]
    return moments[0].timestamp() if moments and moments[0] else None


def idle_memory(portal: own_portal.OwnPortal) -> dict[str, float]:
    """Return the memory of the portal's parts in MB after it had nothing to do for a while."""
    time.sleep(IDLE_S)
    sizes = portal.memory_mb()
    say(", ".join(f"{part} {size:.0f} MB" for part, size in sizes.items()))
    return sizes


def report_memory(fresh: dict[str, float], idle: dict[str, float]) -> None:
    """Report both sums beside what bare processes take.

    The portal has ended by then: memory is shared.
    """
    interpreters = len(idle.keys() - SERVERS)
    bare_mb = bare_process.idle_memory_mb(interpreters)
    peer = Peer(f"empty PostgreSQL and Redis, {interpreters} idle Pythons", bare_mb)
    report("idle_memory_fresh_mb", sum(fresh.values()), "MB", peer=peer)
    report("idle_memory_mb", sum(idle.values()), "MB", peer=peer)


def measure(jobs: int, *, with_ray: bool) -> None:
    """Measure and report all figures."""
    with own_portal.running() as portal:
        fresh = idle_memory(portal)
        rounds, peer = alternate(portal, jobs, with_ray=with_ray)
        say(f"medians since the POST, s: {breakdown(rounds.ours)}")
        first_line_s = median(run.first_line_s for run in rounds.ours)
        report("submit_to_first_line_s", first_line_s, "s", peer=peer)
        report(
            "portal_overhead_p95_s",
            percentile([run.overhead_s for run in rounds.ours], 95),
            "s",
            peer=Peer(bare_process.INTERPRETER, percentile(rounds.bare, 95)),
        )
        idle = idle_memory(portal)
    report_memory(fresh, idle)


def alternate(portal: own_portal.OwnPortal, jobs: int, *, with_ray: bool) -> tuple[Rounds, Peer]:
    """Run one job of ours, one of Ray's, a bare process, and so on. The first round warms up.

    Returns the rounds, and the peer for the time to the first line.
    """
    rounds = Rounds()
    with ExitStack() as stack:
        ray = stack.enter_context(ray_peer.running()) if with_ray else None
        for number in range(jobs + 1):
            run = run_job(portal.client, portal.project)
            ray_s = ray.seconds_to_first_line() if ray else float("nan")
            bare_s = bare_process.seconds_to_first_line()
            say(
                f"{number:3d}  first line {run.first_line_s:5.2f} s, "
                f"runner {run.overhead_s:5.3f} s, ray {ray_s:5.2f} s, bare {bare_s:5.3f} s"
            )
            if number:
                rounds.ours.append(run)
                rounds.rays.append(ray_s)
                rounds.bare.append(bare_s)
        if ray is None:
            return rounds, Peer(bare_process.INTERPRETER, median(rounds.bare))
        return rounds, Peer(ray.version(), median(rounds.rays))


def main() -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--without-ray", action="store_true")
    options = parser.parse_args()
    with figures():
        measure(options.jobs, with_ray=not options.without_ray)


if __name__ == "__main__":
    main()
