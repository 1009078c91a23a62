"""The cost of a project's machines and the time they were held: by person, job or day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

from jobs.ground import clock
from jobs.models import Attempt, Cluster, Project
from jobs.permissions import Actor, Verb, require
from jobs.policies.costs import NOTHING, Slice, Use, rounded, slices, so_far
from jobs.spending import OF_COST, charge_of, is_waiting_kind, there_between
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

    def add(self, other: _Sum) -> None:
        self.usd += other.usd
        self.node_hours += other.node_hours
        if self.gpu_hours is None or other.gpu_hours is None:
            self.gpu_hours = None
        else:
            self.gpu_hours += other.gpu_hours

    def row(self, key: str) -> UsageRow:
        gpu_hours = None if self.gpu_hours is None else round(self.gpu_hours, 3)
        return UsageRow(
            key=key,
            name=self.name,
            usd=rounded(self.usd),
            node_hours=round(self.node_hours, 3),
            gpu_hours=gpu_hours,
        )


@dataclass(slots=True)
class _Stay:
    """One attempt on a cluster, with whose it is."""

    use: Use
    user: str
    job_id: int
    job_name: str
    gpus: int | None


@dataclass(slots=True)
class _Machines:
    cluster: Cluster
    stays: dict[int, _Stay] = field(default_factory=dict)

    @property
    def gpus(self) -> int | None:
        """The GPUs of each node, as requested by the job for which the machines were launched."""
        return self.stays[min(self.stays)].gpus if self.stays else None


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
    total = _Sum()
    for machines, piece in _pieces(project, _midnight(first_day), _midnight(last_day) + _DAY):
        held = _held(machines, piece)
        total.add(held)
        for by, of_keys in sums.items():
            key, name = _whose(by, machines, piece)
            of_keys[key].add(held)
            of_keys[key].name = name
    whole = total.row("")
    return [
        Usage(
            project=project.slug,
            first_day=first_day,
            last_day=last_day,
            by=by,
            rows=_rows(of_keys, is_sorted=by == UsageBy.DAY),
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


def _pieces(project: Project, begin: datetime, end: datetime) -> Iterator[tuple[_Machines, Slice]]:
    """Yield stretches of machines' time between the two, none across a midnight."""
    now = clock.now()
    end = min(end, now)
    for machines in _machines_of(project, begin, end):
        charge = charge_of(machines.cluster)
        until = charge.until(now)
        first = max(begin, _midnight(charge.began.astimezone(timezone.utc).date()))
        days = range((min(end, until) - first) // _DAY + 2)
        found = slices(
            so_far(charge, now),
            [stay.use for stay in machines.stays.values()],
            began=charge.began,
            until=until,
            waits=is_waiting_kind(machines.cluster),
            cuts=[first + number * _DAY for number in days],
        )
        for piece in found:
            if begin <= piece.begin < end:
                yield machines, piece


def _machines_of(project: Project, begin: datetime, end: datetime) -> list[_Machines]:
    clusters = there_between(begin, end).filter(project=project)
    found = {
        cluster.pk: _Machines(cluster)
        for cluster in clusters.only(*OF_COST, "num_nodes", "is_reusable", "fingerprint")
    }
    stays = Attempt.objects.filter(cluster__in=clusters).order_by("pk")
    fields = ("pk", "cluster_id", "created_at", "ended_at")
    of_job = (
        "job__submitted_by__username",
        "job_id",
        "job__name",
        "job__request_options__resources",
    )
    for pk, cluster_id, begun, ended, user, job_id, name, wanted in stays.values_list(
        *fields, *of_job
    ):
        # Clusters come and go between two queries.
        if cluster_id in found:
            use = Use(pk, begun, ended)
            found[cluster_id].stays[pk] = _Stay(use, user, job_id, name, known_count(wanted or {}))
    return list(found.values())


def _whose(by: UsageBy, machines: _Machines, piece: Slice) -> tuple[str, str]:
    if by == UsageBy.DAY:
        return piece.begin.astimezone(timezone.utc).date().isoformat(), ""
    stay = machines.stays.get(piece.attempt_id or 0)
    if stay is None:
        return "", NOBODY
    if by == UsageBy.USER:
        return stay.user, stay.user
    return str(stay.job_id), stay.job_name


def _held(machines: _Machines, piece: Slice) -> _Sum:
    hours = (piece.end - piece.begin) / _HOUR * float(piece.part)
    node_hours = hours * machines.cluster.num_nodes
    stay = machines.stays.get(piece.attempt_id or 0)
    gpus = machines.gpus if stay is None else stay.gpus
    return _Sum("", piece.usd, node_hours, None if gpus is None else node_hours * gpus)


def _rows(sums: dict[str, _Sum], *, is_sorted: bool) -> list[UsageRow]:
    if is_sorted:
        return [total.row(key) for key, total in sums.items()]
    dearest = sorted(sums.items(), key=lambda each: (-each[1].usd, -each[1].node_hours, each[0]))
    rows = [total.row(key) for key, total in dearest[:MOST_ROWS]]
    if others := dearest[MOST_ROWS:]:
        rest = _Sum(f"{len(others)} others")
        for _, each in others:
            rest.add(each)
        rows.append(rest.row("others"))
    return rows


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.utc)
