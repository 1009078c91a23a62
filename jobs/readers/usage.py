"""The cost of a project's machines and the time they were held: by person, job or day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

from jobs.ground import clock
from jobs.models import Attempt, Cluster, Project
from jobs.permissions import Actor, Verb, require
from jobs.policies.costs import NOTHING, Use, rounded, slices, so_far
from jobs.readers.settled_usage import Part, SettledUsage, settled_usage
from jobs.spending import OF_COST, charge_of, is_waiting_kind
from jobs.statuses import UsageBy
from monarch_client.spec.accelerators import known_count
from monarch_client.wire.money import Usage, UsageRow

MOST_DAYS = 400
# Of persons and jobs; what further ones have cost is one row.
MOST_ROWS = 500
NOBODY = "No job: idle machines and deleted jobs"
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


@dataclass(slots=True)
class _Sum:
    name: str = ""
    usd: Decimal = NOTHING
    node_hours: float = 0.0
    gpu_hours: float | None = 0.0

    def add(self, usd: Decimal, node_hours: float, gpu_hours: float | None) -> None:
        self.usd += usd
        self.node_hours += node_hours
        if self.gpu_hours is None or gpu_hours is None:
            self.gpu_hours = None
        else:
            self.gpu_hours += gpu_hours

    def add_part(self, part: Part, name: str = "") -> None:
        self.add(part.usd, part.node_hours, part.gpu_hours)
        self.name = name

    def row(self, key: str) -> UsageRow:
        gpu_hours = None if self.gpu_hours is None else round(self.gpu_hours, 3)
        return UsageRow(
            key=key,
            name=self.name,
            usd=rounded(self.usd),
            node_hours=round(self.node_hours, 3),
            gpu_hours=gpu_hours,
        )


class _Owner(NamedTuple):
    """The user and the job that a time on machines belongs to, and the GPUs of each node."""

    user: str
    job_id: str
    job_name: str
    gpus: int | None


class _Piece(NamedTuple):
    """Hours of machines within a day (UTC). Without an owner they were idle."""

    day: date
    owner: _Owner | None
    usd: Decimal
    node_hours: float
    gpus: int | None


@dataclass(slots=True)
class _Machines:
    cluster: Cluster
    uses: dict[int, Use] = field(default_factory=dict)
    owners: dict[int, _Owner] = field(default_factory=dict)

    @property
    def gpus(self) -> int | None:
        """The GPUs of each node, as requested by the job for which the machines were launched."""
        return self.owners[min(self.owners)].gpus if self.owners else None


def usage(actor: Actor, project: Project, first_day: date, last_day: date, by: UsageBy) -> Usage:
    """Return the cost of those days so far; most first, days in their order."""
    [found] = usages(actor, project, first_day, last_day, [by])
    return found


def usages(
    actor: Actor, project: Project, first_day: date, last_day: date, bys: Sequence[UsageBy]
) -> list[Usage]:
    """Return the usage by several groupings from one read, so that they agree with one another."""
    require(actor, Verb.VIEW_PROJECT, project)
    sums = {by: _no_sums(by, first_day, last_day) for by in bys}
    total, now = _Sum(), clock.now()
    begin, end = _midnight(first_day), min(_midnight(last_day) + _DAY, now)
    most_jobs = MOST_ROWS if UsageBy.JOB in sums else 0
    settled = settled_usage(project, begin, end, most_jobs=most_jobs)
    for piece in _pieces(settled.to_divide, begin, end, now):
        gpu_hours = None if piece.gpus is None else piece.node_hours * piece.gpus
        total.add(piece.usd, piece.node_hours, gpu_hours)
        for by, of_keys in sums.items():
            key, name = _whose(by, piece)
            of_keys[key].add(piece.usd, piece.node_hours, gpu_hours)
            of_keys[key].name = name
    for part in settled.parts:
        total.add_part(part)
        if part.day and UsageBy.DAY in sums:
            sums[UsageBy.DAY][part.day.isoformat()].add_part(part)
        if UsageBy.USER in sums:
            sums[UsageBy.USER][part.user].add_part(part, part.user)
    if UsageBy.JOB in sums:
        for part in settled.jobs:
            sums[UsageBy.JOB][str(part.job_id)].add_part(part, part.job_name)
    whole = total.row("")
    return [
        Usage(
            project=project.slug,
            first_day=first_day,
            last_day=last_day,
            by=by,
            rows=_rows(of_keys, by, settled),
            usd=whole.usd,
            node_hours=whole.node_hours,
            gpu_hours=whole.gpu_hours,
        )
        for by, of_keys in sums.items()
    ]


def _no_sums(by: UsageBy, first_day: date, last_day: date) -> dict[str, _Sum]:
    """Return empty sums; days have an entry each all the same."""
    sums: dict[str, _Sum] = defaultdict(_Sum)
    if by == UsageBy.DAY:
        for number in range((last_day - first_day).days + 1):
            sums[(first_day + number * _DAY).isoformat()] = _Sum()
    return sums


def _pieces(
    cluster_ids: Sequence[int], begin: datetime, end: datetime, now: datetime
) -> Iterator[_Piece]:
    """Yield stretches of these clusters' time between the two, none across a midnight."""
    for machines in _machines_of(cluster_ids).values():
        yield from _divided(machines, begin, end, now)


def _divided(
    machines: _Machines, begin: datetime, end: datetime, now: datetime
) -> Iterator[_Piece]:
    """Yield the pieces of a cluster's time between the two: one for each attempt and day."""
    cluster, charge = machines.cluster, charge_of(machines.cluster)
    until = charge.until(now)
    first = max(begin, _midnight(charge.began.astimezone(timezone.utc).date()))
    days = range((min(end, until) - first) // _DAY + 2)
    found = slices(
        so_far(charge, now),
        list(machines.uses.values()),
        began=charge.began,
        until=until,
        waits=is_waiting_kind(cluster),
        cuts=[first + number * _DAY for number in days],
    )
    for piece in found:
        if begin <= piece.begin < end:
            owner = machines.owners.get(piece.attempt_id or 0)
            hours = (piece.end - piece.begin) / _HOUR * float(piece.part)
            yield _Piece(
                piece.begin.astimezone(timezone.utc).date(),
                owner,
                piece.usd,
                hours * cluster.num_nodes,
                machines.gpus if owner is None else owner.gpus,
            )


def _machines_of(cluster_ids: Sequence[int]) -> dict[int, _Machines]:
    clusters = Cluster.objects.filter(pk__in=cluster_ids)
    found = {
        cluster.pk: _Machines(cluster)
        for cluster in clusters.only(*OF_COST, "num_nodes", "is_reusable", "fingerprint")
    }
    attempts = Attempt.objects.filter(cluster__in=list(found)).order_by("pk")
    for pk, cluster_id, begun, ended, *of_owner in attempts.values_list(
        "pk", "cluster_id", "created_at", "ended_at", *_OF_OWNER
    ):
        found[cluster_id].uses[pk] = Use(pk, begun, ended)
        found[cluster_id].owners[pk] = _owner(*of_owner)
    return found


# The columns of an attempt that `_owner` takes.
_OF_OWNER = (
    "job__submitted_by__username",
    "job_id",
    "job__name",
    "job__request_options__resources",
)


def _owner(user: str, job_id: int, job_name: str, resources: Any) -> _Owner:
    return _Owner(user, str(job_id), job_name, known_count(resources or {}))


def _whose(by: UsageBy, piece: _Piece) -> tuple[str, str]:
    if by == UsageBy.DAY:
        return piece.day.isoformat(), ""
    if piece.owner is None:
        return "", NOBODY
    if by == UsageBy.USER:
        return piece.owner.user, piece.owner.user
    return piece.owner.job_id, piece.owner.job_name


def _rows(sums: dict[str, _Sum], by: UsageBy, settled: SettledUsage) -> list[UsageRow]:
    if by == UsageBy.DAY:
        return [total.row(key) for key, total in sums.items()]
    dearest = sorted(sums.items(), key=_place)
    rows = [total.row(key) for key, total in dearest[:MOST_ROWS]]
    count, rest = _unlisted_jobs(settled) if by == UsageBy.JOB else (0, _Sum())
    for _, each in dearest[MOST_ROWS:]:
        rest.add(each.usd, each.node_hours, each.gpu_hours)
    count += len(dearest[MOST_ROWS:])
    if count:
        rest.name = f"{count} others"
        rows.append(rest.row("others"))
    return rows


def _place(each: tuple[str, _Sum]) -> tuple[Decimal, float, int, str]:
    """Return the sort key of a row: the most first, of equal ones the job of the lowest number."""
    key, total = each
    return (-total.usd, -total.node_hours, len(key), key)


def _unlisted_jobs(settled: SettledUsage) -> tuple[int, _Sum]:
    """Return the number of settled jobs that are not listed by themselves, and their sum."""
    count = settled.job_count - len(settled.jobs)
    rest = _Sum()
    if not count:
        return 0, rest
    unknown = 0
    for parts, sign in ((settled.parts, 1), (settled.jobs, -1)):
        for part in parts:
            rest.add(sign * part.usd, sign * part.node_hours, sign * (part.gpu_hours or 0.0))
            unknown += sign * part.pieces if part.gpus is None else 0
    # What rounding left over is no time.
    rest.node_hours = max(0.0, rest.node_hours)
    rest.gpu_hours = None if unknown else max(0.0, rest.gpu_hours or 0.0)
    return count, rest


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.utc)
