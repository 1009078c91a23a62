"""The usage of clusters whose cost is final and one job's, added up by the database.

Nearly all clusters of a month are such, and `jobs.models.settled_use` has a short row of each. The
others have to be divided, see `jobs.readers.usage`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal

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
    """Add up the clusters between the two whose cost is final, and one attempt's on one day.

    `begin` is a midnight (UTC), `end` another one or the present. `jobs` has at most `most_jobs`
    of the jobs with none of the other clusters, and all that have both kinds. With 0 jobs are not
    added up.
    """
    values: dict[str, int | date] = {
        "project": project.pk,
        "begin": begin,
        "end": end,
        "first_day": begin.date(),
        "last_day": (end - timedelta.resolution).date(),
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
    for kind, day, number, gpus, micro_usd, node_hours, pieces in rows:
        if kind == "part":
            user = users[number].get_username()
            found.parts.append(Part(_usd(micro_usd), node_hours, gpus, pieces, day=day, user=user))
        elif kind == "job" and number in jobs:
            name, own = jobs[number]
            part = Part(_usd(micro_usd), node_hours, own, pieces, job_id=number, job_name=name)
            found.jobs.append(part)
    return found


def _named_jobs(numbers: list[int]) -> dict[int, tuple[str, int | None]]:
    """Return the name of each job and the GPUs of each of its nodes."""
    columns = ("pk", "name", "request_options__resources")
    rows = Job.objects.filter(pk__in=numbers).values_list(*columns)
    return {pk: (name, known_count(resources or {})) for pk, name, resources in rows}


def _usd(millionths: float) -> Decimal:
    return Decimal(millionths).scaleb(-6)


_SUMS = """
WITH by_job AS MATERIALIZED (
    SELECT job_id, sum(micro_usd::float8) AS micro_usd, sum(node_hours) AS node_hours,
        count(*) AS pieces
    FROM jobs_settleduse
    WHERE project_id = %(project)s AND day BETWEEN %(first_day)s AND %(last_day)s
        AND %(most)s > 0
    GROUP BY job_id
), to_divide AS MATERIALIZED (
    SELECT cluster.id FROM jobs_cluster AS cluster
    WHERE project_id = %(project)s AND created_at < %(end)s
        AND (gone_at IS NULL OR gone_at >= %(begin)s)
        AND NOT EXISTS (
            SELECT FROM jobs_settleduse AS settled
            WHERE settled.cluster_id = cluster.id AND settled.project_id = %(project)s
                AND day BETWEEN %(first_day)s AND %(last_day)s
        )
), divided AS MATERIALIZED (
    SELECT DISTINCT job_id FROM jobs_attempt
    WHERE cluster_id = ANY (ARRAY(SELECT id FROM to_divide))
)
SELECT 'part', day, user_id, gpus, sum(micro_usd::float8), sum(node_hours), count(*)
    FROM jobs_settleduse
    WHERE project_id = %(project)s AND day BETWEEN %(first_day)s AND %(last_day)s
    GROUP BY day, user_id, gpus
UNION ALL SELECT 'count', NULL, NULL, NULL, NULL, NULL, count(*) FROM by_job
UNION ALL SELECT 'divide', NULL, id, NULL, NULL, NULL, 0 FROM to_divide
UNION ALL SELECT 'job', NULL, job_id, NULL, micro_usd, node_hours, pieces FROM by_job
    WHERE job_id IN (SELECT job_id FROM divided)
UNION ALL (
    SELECT 'job', NULL, job_id, NULL, micro_usd, node_hours, pieces FROM by_job
    WHERE job_id NOT IN (SELECT job_id FROM divided)
    ORDER BY micro_usd DESC, node_hours DESC, job_id LIMIT %(most)s
)
"""
