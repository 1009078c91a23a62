"""A database of its own with a deep queue in it: PostgreSQL and Redis as the portal embeds them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from bench import bare_servers
from bench.measure import say
from bench.schedule.trace import Recipe, TraceJob, drawn

if TYPE_CHECKING:
    from jobs.models import Job, Project, User

SETTINGS = "bench.portal_settings"
NODES = 10_000
QUEUE = "research"
A_BATCH = 5000


@contextmanager
def servers() -> Iterator[None]:
    """Run PostgreSQL (durable, as in the product) and Redis for this process and its children."""
    with bare_servers.running() as bare:
        os.environ.update(
            MPORTAL_HOME=str(bare.root / "home"),
            DATABASE_URL=bare.postgres.url(),
            REDIS_URL=bare.redis.url,
            SECRET_KEY="only-for-measurements",
            DJANGO_SETTINGS_MODULE=SETTINGS,
            BENCH_FAKE_BACKEND=str(bare.root / "fake"),
            MPORTAL_SKYPILOT="off",
        )
        django.setup()
        yield


def fill(queued: int, running: int) -> None:
    """Create a full machine of `running` jobs, and `queued` jobs of many people in its pool."""
    # Models only after the set-up.
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    from jobs.backends.fake.backend import FakeBackend  # noqa: PLC0415
    from jobs.models import Pool, Queue  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    FakeBackend(Path(os.environ["BENCH_FAKE_BACKEND"])).set_capacity(NODES)
    pool = Pool.objects.create(name="all", backend_name="fake", caps={"nodes": NODES})
    Queue.objects.create(name=QUEUE, pool=pool)
    trace = drawn(Recipe(jobs=queued, nodes=NODES, load=2.0))
    owners = Owners(trace.weights)
    fill_running(owners, running, NODES // running)
    for some in _batches(trace.jobs):
        owners.submit(some)
    say(f"{queued:,} jobs wait and {running:,} run")
    with connection.cursor() as cursor:
        # As autovacuum has long done where a queue has grown to this.
        cursor.execute("VACUUM ANALYZE")


class Owners:
    """The projects and people of a trace as rows, made when they first submit."""

    def __init__(self, weights: dict[int, float]) -> None:
        from jobs.models import Project  # noqa: PLC0415

        self._projects: dict[int, Project] = {
            number: Project.objects.create(
                slug=f"team-{number}", name=f"Team {number}", share_weight=weight
            )
            for number, weight in weights.items()
        }
        self._people: dict[int, User] = {}

    def submit(self, jobs: list[TraceJob], **more: Any) -> list[Job]:
        """Create the rows of jobs, which are queued unless `more` sets other columns."""
        from jobs.models import Job  # noqa: PLC0415

        return Job.objects.bulk_create(
            Job(
                project=self.project(job),
                name=f"train-{job.number}",
                kind="monarch",
                spec=_spec(job),
                spec_source=str(_spec(job)),
                num_nodes=job.nodes,
                backend_name="fake",
                queue_name=QUEUE,
                duration_s=int(job.asks_s),
                submitted_by=self._person(job.person),
                **more,
            )
            for job in jobs
        )

    def project(self, job: TraceJob) -> Project:
        """Return the project of the job."""
        return self._projects[job.project]

    def _person(self, number: int) -> User:
        from jobs.models import User  # noqa: PLC0415

        if number not in self._people:
            self._people[number] = User.objects.create(username=f"person-{number}")
        return self._people[number]


def fill_running(owners: Owners, count: int, nodes: int) -> None:
    """Create jobs that have been running for an hour, each on a cluster of its own."""
    from jobs.ground import clock  # noqa: PLC0415
    from jobs.models import Attempt, Cluster, Installation  # noqa: PLC0415
    from jobs.statuses import ClusterStatus, JobStatus  # noqa: PLC0415

    # With any other name they would be stray clusters, of which no portal has thousands.
    began, key = clock.now() - timedelta(hours=1), Installation.current().key
    traced = [
        TraceJob(number, 0.0, nodes, 3600.0, 7200.0 + number, number % 5, number % 5 * 100)
        for number in range(count)
    ]
    for some in _batches(traced):
        jobs = owners.submit(some, status=JobStatus.RUNNING, started_at=began)
        clusters = Cluster.objects.bulk_create(
            Cluster(
                project=owners.project(each),
                name=f"mp{key}-bench-{each.number}-1",
                backend_name="fake",
                num_nodes=nodes,
                started_by=job.submitted_by,
                queue_name=QUEUE,
                status=ClusterStatus.UP,
            )
            for job, each in zip(jobs, some, strict=True)
        )
        Attempt.objects.bulk_create(
            Attempt(
                job=job,
                number=1,
                cluster=cluster,
                token_digest=f"{job.pk:064d}",
                created_at=began,
                run_started_at=began,
            )
            for job, cluster in zip(jobs, clusters, strict=True)
        )


def _spec(job: TraceJob) -> dict[str, Any]:
    """Return a specification about as long as those that people write."""
    return {
        "name": f"train-{job.number}",
        "num_nodes": job.nodes,
        "resources": {"infra": "fake", "cpus": "8+", "memory": "32+"},
        "envs": {"DATA": "s3://data/tokens", "STEPS": "100000", "SEED": str(job.number)},
        "setup": "pip install -r requirements.txt\n",
        "run": "python -m train --config configs/large.yaml --data $DATA --steps $STEPS\n",
        "portal": {"max_duration": int(job.asks_s), "queue": QUEUE, "kind": "monarch"},
    }


def _batches(jobs: Any) -> Iterator[list[TraceJob]]:
    rest = iter(jobs)
    while some := list(islice(rest, A_BATCH)):
        yield some
