"""The memory of the portal's processes over many small jobs, a third of them with secrets.

`make bench NAME=soak`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import argparse
import base64
import os
import time
from collections import deque

from bench import own_portal
from bench.measure import NoPeer, figures, report, say
from monarch_client.rest.client import PortalClient
from monarch_client.wire.jobs import Job

JOBS, EVERY, AT_ONCE = 300, 50, 4
JOB_LIMIT_S = 300.0
IDLE_S = 10.0
SECRETS = {"SMALL": 30, "TOKEN": 48, "KEY": 1800}
# A job prints what a small one does, and its secrets as programs often show them.
SPEC = """\
name: soak
run: |
  for i in $(seq 200); do echo "step $i loss=0.$i {\\"rank\\": 0}"; done
  env | base64; env
"""
WITH_SECRETS = SPEC + "secrets: [SMALL, TOKEN, KEY]\n"


def set_secrets(client: PortalClient, project: str) -> None:
    """Make the secrets that jobs name, with random values of different sizes."""
    for name, size in SECRETS.items():
        client.set_secret(project, name, base64.b64encode(os.urandom(size)).decode())


def run_jobs(client: PortalClient, project: str, numbers: range) -> None:
    """Run so many jobs to their end, a few at a time, every third with secrets."""
    waiting: deque[Job] = deque()
    for number in numbers:
        if len(waiting) >= AT_ONCE:
            wait_for(client, project, waiting.popleft())
        waiting.append(client.submit(project, SPEC if number % 3 else WITH_SECRETS))
    for job in waiting:
        wait_for(client, project, job)


def wait_for(client: PortalClient, project: str, job: Job) -> None:
    """Wait until the job has ended; RuntimeError: it did not succeed."""
    deadline = time.monotonic() + JOB_LIMIT_S
    while time.monotonic() < deadline:
        found = client.job(project, job.id)
        if found.status == "SUCCEEDED":
            return
        if found.ended_at is not None:
            raise RuntimeError(f"job {job.id}: {found.status} {found.message}")
        time.sleep(0.2)
    raise TimeoutError(f"job {job.id} did not end")


def measure(jobs: int) -> list[dict[str, float]]:
    """Return the memory of each process in MB after each EVERY jobs."""
    sizes = []
    with own_portal.running() as portal:
        set_secrets(portal.client, portal.project)
        for first in range(0, jobs, EVERY):
            last = min(jobs, first + EVERY)
            run_jobs(portal.client, portal.project, range(first, last))
            time.sleep(IDLE_S)
            sizes.append(portal.memory_mb())
            parts = ", ".join(f"{part} {size:.1f}" for part, size in sizes[-1].items())
            say(f"after {last} jobs: {parts}; in all {sum(sizes[-1].values()):.1f} MB")
    return sizes


def main() -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    options = parser.parse_args()
    with figures():
        first, *_, last = measure(options.jobs)
        own = NoPeer("a process is compared with itself after the first 50 jobs")
        for part in last:
            report(f"soak_{part}_growth_mb", last[part] - first.get(part, 0.0), "MB", peer=own)
        report("soak_memory_mb", sum(last.values()), "MB", peer=own)


if __name__ == "__main__":
    main()
