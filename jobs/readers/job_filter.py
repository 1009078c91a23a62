"""The filters of the job table: the matching jobs, their number in each status, and the choices.

All of it stays fast in a project of a million jobs: filters have indexes, and counting stops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import Count, F, Func, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce

from jobs.ground import clock
from jobs.ground.query_plans import planned_for_values
from jobs.models import Job, Membership, Project, User
from jobs.permissions import Actor, Verb, jobs_of, require
from jobs.policies import table_queries
from jobs.policies.table_queries import iso_moment
from jobs.statuses import FINAL_STATUSES, JobStatus, StopReason, WaitReason
from monarch_client.spec.durations import seconds_in

# Counting goes no further, in each status.
COUNT_LIMIT = 2_000
# Texts that are too short for the index are searched in so many of the newest jobs.
SHORT_TEXT_LIMIT = 2_000
# More digits than this do not fit the database's 64 bits.
ID_DIGITS = 18
# Shorter texts have no trigram.
_GRAM = 3
_LONGEST_S = 100 * 366 * 86_400
REASONS = table_queries.REASONS
_CLOCKS_DIFFER = timedelta(hours=1)
_LATEST = datetime.max.replace(tzinfo=timezone.utc) - _CLOCKS_DIFFER


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Empty means "all". `user` may be "me"; `q` looks in the name and is also taken as an id.

    `reason` is why a job waits or ended. A label is "name" or "name=value". `since` and `until` are
    about the time of the submission: ISO times, or durations before now such as "24h".
    """

    status: tuple[str, ...] = ()
    user: str = ""
    name: str = ""
    kind: str = ""
    array: int | None = None
    parent: int | None = None
    gpu: str = ""
    queue: str = ""
    backend: str = ""
    reason: str = ""
    labels: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    q: str = ""


@dataclass(frozen=True, slots=True)
class FilterChoices:
    """The values that filters of a project's jobs may have."""

    gpu_types: list[str]
    queues: list[str]
    backends: list[str]
    users: list[str]


class _NameGrams(Func):
    """The trigrams of a name, as the index `job_by_name_part` has them."""

    function = "mportal_grams"
    output_field = ArrayField(TextField())


class _LabelWords(Func):
    """Each label as its name and as name=value, as the index `job_by_label_word` has them."""

    function = "mportal_labels"
    output_field = ArrayField(TextField())


def moment_in(text: str) -> datetime | None:
    """Return the time that `text` names: ISO, or a duration before now. None if it names none."""
    seconds = seconds_in(text)
    if seconds is not None:
        return clock.now() - timedelta(seconds=min(seconds, _LONGEST_S))
    return iso_moment(text)


def matching_jobs(actor: Actor, project: Project, flt: JobFilter) -> QuerySet[Job]:
    """Return the jobs of the project that the actor may see and that match, in no order."""
    jobs = jobs_of(actor, project)
    if flt.status:
        jobs = jobs.filter(status__in=flt.status)
    if flt.user == "me":
        jobs = jobs.filter(submitted_by=actor.user)
    elif flt.user:
        # By the number: a join keeps the database from the index.
        user = User.objects.filter(username=flt.user).values_list("pk", flat=True).first()
        jobs = jobs.filter(submitted_by=user or 0)
    if flt.gpu:
        jobs = jobs.filter(gpu_type=flt.gpu.upper(), gpu_count__gt=0)
    exact = {
        "name": flt.name,
        "kind": flt.kind,
        "queue_name": flt.queue,
        "backend_name": flt.backend,
        "array": flt.array,
        "parent": flt.parent,
    }
    jobs = jobs.filter(**{key: value for key, value in exact.items() if value not in {"", None}})
    if flt.reason:
        jobs = jobs.filter(_for_reason(flt.reason))
    return named_like(_submitted(_with_labels(jobs, flt.labels), project, flt), flt.q)


def _for_reason(reason: str) -> Q:
    waits = Q(status=JobStatus.QUEUED, wait_reason=reason)
    ended = Q(status__in=FINAL_STATUSES | {JobStatus.STOPPING}, stop_reason=reason)
    if reason not in StopReason.values:
        return waits
    return waits | ended if reason in WaitReason.values else ended


def _with_labels(jobs: QuerySet[Job], labels: tuple[str, ...]) -> QuerySet[Job]:
    """Keep the jobs that have all these labels."""
    if not labels:
        return jobs
    wanted = Value(list(labels), output_field=ArrayField(TextField()))
    return jobs.alias(words=_LabelWords(F("labels"))).filter(words__contains=wanted)


def _submitted(jobs: QuerySet[Job], project: Project, flt: JobFilter) -> QuerySet[Job]:
    since, until = moment_in(flt.since), moment_in(flt.until)
    if since is not None:
        jobs = jobs.filter(created_at__gte=since)
    if until is None:
        return jobs
    # Numbers grow with time, but for the clocks of several hosts: newer jobs are not even read.
    newer = Job.objects.filter(
        project=project, created_at__gte=min(until, _LATEST) + _CLOCKS_DIFFER
    )
    first = newer.order_by("created_at").values_list("pk", flat=True).first()
    older = jobs.filter(created_at__lt=until)
    return older if first is None else older.filter(pk__lt=first)


def named_like(jobs: QuerySet[Job], text: str) -> QuerySet[Job]:
    """Keep the jobs with `text` in the name, or as their id."""
    if not text:
        return jobs
    by_name = Q(name__icontains=text)
    if len(text) < _GRAM:
        # A search without an index, which typing a longer text starts as well. As a bound, the
        # limit ends the search; as a list of numbers, it was compared with each job.
        last = jobs.order_by("-pk").values("pk")[SHORT_TEXT_LIMIT - 1 : SHORT_TEXT_LIMIT]
        jobs = jobs.filter(pk__gte=Coalesce(Subquery(last), 0))
    else:
        # Narrows by the index what the other condition then checks.
        jobs = jobs.alias(grams=_NameGrams(F("name")))
        by_name &= Q(grams__contains=_NameGrams(Value(text)))
    number = number_in(text)
    return jobs.filter(by_name if number is None else by_name | Q(pk=number))


def number_in(text: str) -> int | None:
    """Return the number of a job that `text` is; None if it is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) < ID_DIGITS
    return int(text) if is_number else None


def matching_counts(actor: Actor, project: Project, flt: JobFilter) -> dict[str, int]:
    """Count the jobs that match, apart from the status, by status; COUNT_LIMIT + 1: or more.

    Statuses without a job are absent.
    """
    require(actor, Verb.VIEW_PROJECT, project)
    jobs = matching_jobs(actor, project, replace(flt, status=())).order_by()
    parts, values = [], []
    for status in JobStatus:
        some = jobs.filter(status=status).values("pk")[: COUNT_LIMIT + 1]
        sql, params = some.query.sql_with_params()
        parts.append(f"SELECT %s AS status, count(*) AS n FROM ({sql}) AS found")  # noqa: S608
        values += [status.value, *params]
    with planned_for_values(), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), values)
        return {status: count for status, count in cursor.fetchall() if count}


def status_counts(actor: Actor, project: Project) -> dict[str, int]:
    """Count all jobs of the project by status; statuses without a job are absent."""
    require(actor, Verb.VIEW_PROJECT, project)
    rows = Job.objects.filter(project=project).values("status").annotate(n=Count("pk"))
    return {row["status"]: row["n"] for row in rows.order_by()}


def has_jobs(actor: Actor, project: Project) -> bool:
    """Whether the project has any job."""
    return jobs_of(actor, project).exists()


def filter_choices(actor: Actor, project: Project) -> FilterChoices:
    """Return the values that the project's jobs have, by name, and the names of its members."""
    require(actor, Verb.VIEW_PROJECT, project)
    members = Membership.objects.filter(project=project).order_by("user__username")
    found: dict[str, list[str]] = {column: [] for column in _DISTINCT_COLUMNS}
    with connection.cursor() as cursor:
        cursor.execute(_DISTINCT_VALUES, {"project": project.pk})
        for column, value in cursor.fetchall():
            found[column].append(value)
    return FilterChoices(
        gpu_types=found["gpu_type"],
        queues=found["queue_name"],
        backends=found["backend_name"],
        users=list(members.values_list("user__username", flat=True)),
    )


# Distinct values without reading all rows: one step in the index for each.
_DISTINCT = """
WITH RECURSIVE found AS (
    (SELECT {column} AS value FROM jobs_job WHERE project_id = %(project)s AND {condition}
     ORDER BY {column} LIMIT 1)
    UNION ALL
    SELECT (SELECT {column} FROM jobs_job WHERE project_id = %(project)s AND {condition}
            AND {column} > found.value ORDER BY {column} LIMIT 1)
    FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value <> ''
"""
_DISTINCT_COLUMNS = {"gpu_type": "gpu_count > 0", "queue_name": "true", "backend_name": "true"}
_DISTINCT_VALUES = " UNION ALL ".join(
    f"SELECT '{column}', value FROM ({_DISTINCT.format(column=column, condition=condition)}) AS v"  # noqa: S608
    for column, condition in _DISTINCT_COLUMNS.items()
)
