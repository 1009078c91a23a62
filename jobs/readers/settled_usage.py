"""The usage of clusters whose cost is final and one job's, added up by the database.

Nearly all clusters of a month are such: the others have to be divided, see `jobs.readers.usage`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache

from django.db import connection

from jobs.ground.query_plans import planned_for_values
from jobs.models import Job, Project, User
from monarch_client.spec.accelerators import known_count


@dataclass(frozen=True, slots=True)
class Part:
    """A sum of machines' time: of one user on one day (UTC), or of one job.

    `gpus`: of each node; None where the choices of the job differ in it. `pieces` are clusters.
    """

    usd: Decimal
    node_hours: float
    gpus: int | None
    pieces: int
    day: date | None = None
    user: str = ""
    job_id: int = 0
    job_name: str = ""

    @property
    def gpu_hours(self) -> float | None:
        """The hours of GPUs; None where their number is not known."""
        return None if self.gpus is None else self.node_hours * self.gpus


@dataclass(slots=True)
class SettledUsage:
    """The sums by user and day, those of the jobs with most of it, and the clusters left out."""

    parts: list[Part] = field(default_factory=list)
    jobs: list[Part] = field(default_factory=list)
    job_count: int = 0
    to_divide: list[int] = field(default_factory=list)


def settled_usage(
    project: Project, begin: datetime, end: datetime, *, most_jobs: int
) -> SettledUsage:
    """Add up the clusters between the two whose last bill belongs to one attempt and one day.

    `jobs` has at most `most_jobs` of the jobs with none of the other clusters, and all that have
    both kinds. With 0 jobs are not added up.
    """
    values: dict[str, int | datetime] = {
        "project": project.pk,
        "begin": begin,
        "end": end,
        "most": most_jobs,
    }
    with planned_for_values(), connection.cursor() as cursor:
        cursor.execute(_SUMS, values)
        rows = cursor.fetchall()
    found = SettledUsage(
        to_divide=[number for kind, _, number, *_ in rows if kind == "divide"],
        job_count=sum(pieces for kind, *_, pieces in rows if kind == "count"),
    )
    users = User.objects.in_bulk({row[2] for row in rows if row[0] == "part"})
    jobs = _named_jobs([row[2] for row in rows if row[0] == "job"])
    for kind, day, number, resources, usd, node_hours, pieces in rows:
        if kind == "part":
            gpus, user = _gpus_in(resources), users[number].get_username()
            found.parts.append(Part(usd, node_hours, gpus, pieces, day=day, user=user))
        elif kind == "job" and number in jobs:
            name, gpus = jobs[number]
            found.jobs.append(Part(usd, node_hours, gpus, pieces, job_id=number, job_name=name))
    return found


def _named_jobs(numbers: list[int]) -> dict[int, tuple[str, int | None]]:
    """Return the name of each job and the GPUs of each of its nodes."""
    columns = ("pk", "name", "request_options__resources")
    rows = Job.objects.filter(pk__in=numbers).values_list(*columns)
    return {pk: (name, known_count(resources or {})) for pk, name, resources in rows}


@lru_cache(maxsize=1024)
def _gpus_in(resources: str | None) -> int | None:
    return known_count(json.loads(resources or "{}") or {})


# Jobs are numbered in time: the first one of these spares reading all older ones.
_SUMS = """
WITH there AS MATERIALIZED (
    SELECT c.id, min(a.job_id) AS job_id, c.usd, c.num_nodes,
        (c.created_at AT TIME ZONE 'UTC')::date AS day,
        c.num_nodes * date_part('epoch', c.gone_at - c.created_at) / 3600 AS node_hours,
        (
            count(a.id) = 1 AND c.created_at >= %(begin)s AND c.gone_at < %(end)s
            AND c.status = 'GONE' AND c.stopped_at IS NULL
            AND NOT c.is_reusable AND c.fingerprint = ''
            AND (c.usd_per_hour IS NULL OR c.billed_at >= c.gone_at)
            AND (c.created_at AT TIME ZONE 'UTC')::date = (c.gone_at AT TIME ZONE 'UTC')::date
        ) IS TRUE AS is_settled
    FROM jobs_cluster AS c LEFT JOIN jobs_attempt AS a ON a.cluster_id = c.id
    WHERE c.project_id = %(project)s AND c.created_at < %(end)s
        AND (c.gone_at IS NULL OR c.gone_at >= %(begin)s)
    GROUP BY c.id
), part AS (
    SELECT day, job.submitted_by_id, job.request_options -> 'resources' AS resources,
        coalesce(sum(there.usd), 0) AS usd, sum(node_hours) AS node_hours, count(*) AS pieces
    FROM there JOIN jobs_job AS job ON job.id = there.job_id
    WHERE is_settled AND job.id >= (SELECT min(job_id) FROM there WHERE is_settled)
    GROUP BY 1, 2, 3
), by_job AS MATERIALIZED (
    SELECT job_id, coalesce(sum(usd), 0) AS usd, sum(node_hours) AS node_hours, count(*) AS pieces
    FROM there WHERE is_settled AND %(most)s > 0 GROUP BY job_id
), divided AS MATERIALIZED (
    SELECT DISTINCT job_id FROM jobs_attempt
    WHERE cluster_id = ANY (ARRAY(SELECT id FROM there WHERE NOT is_settled))
)
SELECT 'part', day, submitted_by_id, resources, usd, node_hours, pieces FROM part
UNION ALL SELECT 'count', NULL, NULL, NULL, NULL, NULL, count(*) FROM by_job
UNION ALL SELECT 'divide', NULL, id, NULL, NULL, NULL, 0 FROM there WHERE NOT is_settled
UNION ALL SELECT 'job', NULL, job_id, NULL, usd, node_hours, pieces FROM by_job
    WHERE job_id IN (SELECT job_id FROM divided)
UNION ALL (
    SELECT 'job', NULL, job_id, NULL, usd, node_hours, pieces FROM by_job
    WHERE job_id NOT IN (SELECT job_id FROM divided)
    ORDER BY usd DESC, node_hours DESC, job_id::text COLLATE "C" LIMIT %(most)s
)
"""
