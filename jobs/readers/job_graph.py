"""The graph of a job: all jobs that dependencies connect with it, in a constant number of queries.

What a picture of it shows, and how large ones are folded, is in `jobs/web/jobs/graph_picture.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection
from django.db.models import Q

from jobs.models import Job, JobDependency
from jobs.permissions import Actor, job_for, jobs_of
from monarch_client.wire.graph import GraphEdge, GraphJob, JobGraph

# An array has at most 2,000 jobs; further jobs are left out.
MOST_JOBS = 3000

# The nearest jobs come first: PostgreSQL computes no more rows than the limit requests. The ranges
# of one number each make it use the indexes: by equality it expects as many rows for any job as
# the average has, and reads the whole table for each job where one depends on most others.
_CONNECTED = """
WITH RECURSIVE connected(id) AS (
    SELECT %s::bigint
    UNION
    SELECT other.id FROM connected, LATERAL (
        SELECT needs_id AS id FROM jobs_jobdependency
        WHERE job_id BETWEEN connected.id AND connected.id
        UNION ALL
        SELECT job_id FROM jobs_jobdependency
        WHERE needs_id BETWEEN connected.id AND connected.id
    ) AS other WHERE other.id IS NOT NULL
)
SELECT id FROM connected LIMIT %s
"""


def has_graph(job_id: int) -> bool:
    """Whether the job depends on another one, or another one on it."""
    return JobDependency.objects.filter(Q(job=job_id) | Q(needs=job_id)).exists()


def job_graph(actor: Actor, slug: str, job_id: int) -> JobGraph:
    """Return the graph of a job. NotFoundError when the actor cannot see the job."""
    job = job_for(actor, slug, job_id)
    numbers = _connected(job_id)
    visible = jobs_of(actor, job.project).filter(pk__in=numbers[:MOST_JOBS])
    rows = visible.select_related("array").only("name", "status", "ended_at", "array__name")
    jobs = {row.pk: _graph_job(row) for row in rows}
    dependencies = list(JobDependency.objects.filter(job__in=jobs).order_by("job", "needs_number"))
    deleted = {
        each.needs_number: _deleted_job(each) for each in dependencies if each.needs_id is None
    }
    known = deleted | jobs
    return JobGraph(
        job_id=job_id,
        jobs=[known[number] for number in sorted(known)],
        edges=_edges(dependencies, known),
        is_whole=len(numbers) <= MOST_JOBS,
    )


def _connected(job_id: int) -> list[int]:
    """Return the numbers of the connected jobs, and one more than `MOST_JOBS` if there are more."""
    with connection.cursor() as cursor:
        cursor.execute(_CONNECTED, [job_id, MOST_JOBS + 1])
        return [number for (number,) in cursor.fetchall()]


def _edges(rows: Collection[JobDependency], known: Collection[int]) -> list[GraphEdge]:
    return [
        GraphEdge(
            job_id=row.job_id,
            needs=row.needs_number,
            after=row.after,
            state="met" if row.is_met else "broken" if row.is_broken else "open",
        )
        for row in rows
        if row.needs_number in known
    ]


def _graph_job(row: Job) -> GraphJob:
    return GraphJob(
        job_id=row.pk,
        name=row.name,
        status=row.status,
        deleted=False,
        array=row.array_id,
        array_name=row.array.name if row.array else "",
        ended_at=row.ended_at,
    )


def _deleted_job(row: JobDependency) -> GraphJob:
    return GraphJob(
        job_id=row.needs_number,
        name=row.needs_name,
        status=row.ended_as,
        deleted=True,
        array=None,
        array_name="",
        ended_at=None,
    )
