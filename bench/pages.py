"""The time that pages take of the web process, with a large project in the database.

`make bench NAME=pages`, with `ARGS="--jobs N"` for another number of jobs. Each page is requested
in this process, as often as makes a 95th percentile; a browser, a network and other requests come
on top.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from bench.cpu_time import cpu_seconds
from bench.measure import NoPeer, figures, report, say
from bench.schedule.ground import servers

if TYPE_CHECKING:
    from django.test import Client

    from jobs.models import Project, User

JOBS, WAITING, RUNNING, WARM = 100_000, 200, 40, 10
# Those with an attempt and a cluster of this month.
RECENT = 50_000
OF_ARRAY = 2000
A_BATCH = 1000
TIMES, WARM_UP = 40, 3
PAGES = {
    "overview": "/team",
    "overview_all": "/",
    "overview_live": "/team/overview/live",
    "jobs": "/team/jobs",
    "jobs_live": "/team/jobs/live",
    "machines": "/team/machines",
    "queue": "/team/queue",
    "usage": "/team/usage",
    "timeline": "/team/queue/timeline",
    "timeline_week": "/team/queue/timeline?hours=168",
    "timeline_live": "/team/queue/timeline/live",
    "history": "/team/history?name=train-7",
    "array": "/team/arrays/{array}",
    "array_live": "/team/arrays/{array}/live",
    "graph": "/team/jobs/{collector}/graph",
    "job": "/team/jobs/{collector}",
}
WHY_NO_PEER = "dashboards of others show neither the same values nor one project of many"


@dataclass(frozen=True, slots=True)
class Filled:
    """A member of the project, and the numbers that addresses of pages name."""

    user: User
    array: int
    collector: int


def fill(jobs: int) -> Filled:
    """Create a project with `jobs` jobs, of which a few wait and run, and an array besides."""
    # Models only after the set-up.
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    from jobs.models import Job, Membership, Project, User  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    user = User.objects.create_user("ada")
    projects = [Project.objects.create(slug=slug, name=slug) for slug in ("team", "other")]
    for project in projects:
        Membership.objects.create(project=project, user=user, role="member")
    rows = _jobs(projects[0], user, jobs)
    while some := list(islice(rows, A_BATCH)):
        _with_attempts(Job.objects.bulk_create(some))
    say(f"{jobs:,} jobs, {min(jobs, RECENT):,} of them of this month")
    array, collector = _array(projects[0], user)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return Filled(user, array, collector)


def _array(project: Project, user: User) -> tuple[int, int]:
    """Create an array and a job that depends on all of its jobs; return their numbers."""
    from django.utils import timezone  # noqa: PLC0415

    from jobs.models import Job, JobArray, JobDependency  # noqa: PLC0415

    common = {"project": project, "kind": "plain", "spec": {}, "backend_name": "fake"}
    common |= {"submitted_by": user, "num_nodes": 1}
    array = JobArray.objects.create(
        project=project, name="sweep", values=[], size=OF_ARRAY, submitted_by=user
    )
    ended = timezone.now() - timedelta(days=1)
    over = {"status": "SUCCEEDED", "started_at": ended, "ended_at": ended}
    rows = Job.objects.bulk_create(
        (
            Job(name="sweep", array=array, array_index=number, **common, **over)
            for number in range(OF_ARRAY)
        ),
        A_BATCH,
    )
    collector = Job.objects.create(name="collect", status="SUCCEEDED", ended_at=ended, **common)
    JobDependency.objects.bulk_create(
        JobDependency(
            job=collector, needs=row, needs_number=row.pk, needs_name=row.name, ended_as=row.status
        )
        for row in rows
    )
    return array.pk, collector.pk


def _jobs(project: Project, user: User, count: int) -> Iterator[Any]:
    from django.utils import timezone  # noqa: PLC0415

    from jobs.models import Job  # noqa: PLC0415

    now = timezone.now()
    month_s = (now - now.replace(day=1, hour=0, minute=0)).total_seconds()
    for number in range(count):
        left = count - number
        status = "SUCCEEDED" if number % 10 else "FAILED"
        if left <= WAITING:
            status = "QUEUED"
        elif left <= WAITING + RUNNING:
            status = "RUNNING"
        # The older half before this month, the newer one evenly within it.
        age_s = month_s * (left / RECENT if left <= RECENT else 1 + left / RECENT)
        began = now - timedelta(seconds=age_s)
        is_over = status in {"SUCCEEDED", "FAILED"}
        yield Job(
            project=project,
            name=f"train-{number % 500}",
            kind="plain",
            spec={},
            num_nodes=1 + number % 8,
            gpu_type=("H100", "A100-80GB", "")[number % 3],
            gpu_count=(1 + number % 8) * 8 if number % 3 < 2 else 0,
            backend_name="fake",
            submitted_by=user,
            status=status,
            stop_reason=("USER_CODE", "OOM", "SETUP")[number % 3] if status == "FAILED" else "",
            wait_reason="CAPACITY" if status == "QUEUED" else "",
            message="Needs 8 nodes at once; 5 of 16 are free." if status == "QUEUED" else "",
            created_at=began,
            started_at=None if status == "QUEUED" else began,
            ended_at=began + timedelta(minutes=9) if is_over else None,
        )


def _with_attempts(rows: list[Any]) -> None:
    """Create the attempts, clusters and GPU use of jobs that started."""
    from django.db import transaction  # noqa: PLC0415

    from jobs.actions.clusters.settle import settle  # noqa: PLC0415
    from jobs.models import Attempt, Cluster, GpuUse, SettledUse  # noqa: PLC0415

    started = [row for row in rows if row.started_at is not None]
    clusters = Cluster.objects.bulk_create(
        Cluster(
            project=row.project,
            name=f"mp-{row.pk}",
            backend_name="fake",
            num_nodes=row.num_nodes,
            gpu_type=row.gpu_type,
            gpu_count=row.gpu_count,
            status="GONE" if row.ended_at else "UP",
            created_at=row.started_at,
            gone_at=row.ended_at,
            billed_at=row.ended_at,
            usd=Decimal("1.25"),
            usd_per_hour=Decimal("19.90"),
        )
        for row in started
    )
    attempts = Attempt.objects.bulk_create(
        Attempt(
            job=row,
            number=1,
            cluster=cluster,
            token_digest=f"{row.pk:064}",
            created_at=row.started_at,
            ended_at=row.ended_at,
            stop_reason=row.stop_reason,
            diagnosis={"title": "CUDA out of memory"} if row.stop_reason == "OOM" else {},
        )
        for row, cluster in zip(started, clusters, strict=True)
    )
    with transaction.atomic():
        settle([row.cluster_id or 0 for row in attempts])
    running = [row for row in attempts if row.ended_at is None]
    GpuUse.objects.bulk_create(
        GpuUse(
            attempt=row,
            job_id=row.job_id,
            at=row.created_at,
            busy_at=row.created_at,
            points=[[30.0 * number, 8, 80.0, 60.0] for number in range(60)],
        )
        for row in running
    )
    over = [row.cluster_id or 0 for row in attempts if row.ended_at is not None][:WARM]
    if running:
        Cluster.objects.filter(pk__in=over).update(
            status="UP", is_reusable=True, idle_since=running[0].created_at, gone_at=None
        )
        SettledUse.objects.filter(pk__in=over).delete()


def measure(browser: Client, name: str, path: str) -> None:
    """Request one page many times; report the 95th percentile and the processor time."""
    session = _database_session()
    took_ms, size, before_ms = [], 0, 0.0
    for number in range(WARM_UP + TIMES):
        if number == WARM_UP:
            before_ms = _cpu_ms(session)
        began = time.perf_counter()
        answer = browser.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} was answered {answer.status_code}")
        size = len(answer.content)
        if number >= WARM_UP:
            took_ms.append(1000 * (time.perf_counter() - began))
    cpu_ms = (_cpu_ms(session) - before_ms) / TIMES
    took_ms.sort()
    say(f"{name}: median {took_ms[len(took_ms) // 2]:.0f} ms, {size / 1000:.0f} kB")
    worst = took_ms[int(0.95 * len(took_ms))]
    no_peer = NoPeer(WHY_NO_PEER)
    spread = (took_ms[0], took_ms[-1])
    report(f"page_p95_ms_{name}", worst, "ms", peer=no_peer, spread=spread)
    report(f"page_cpu_ms_{name}", cpu_ms, "ms", peer=no_peer)


def _database_session() -> int:
    """Return the process of PostgreSQL that serves this one."""
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _cpu_ms(session: int) -> float:
    return 1000 * (time.process_time() + cpu_seconds(session))


def main() -> None:
    """Fill a database and measure each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    jobs = parser.parse_args().jobs
    with figures(), servers():
        filled = fill(jobs)
        from django.test import Client  # noqa: PLC0415

        from jobs.ground.garbage import look_seldom  # noqa: PLC0415

        look_seldom()  # as in a web process
        browser = Client(headers={"host": "127.0.0.1"})
        browser.force_login(filled.user)
        for name, path in PAGES.items():
            measure(browser, name, path.format(array=filled.array, collector=filled.collector))


if __name__ == "__main__":
    main()
