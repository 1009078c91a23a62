"""Usage that the database adds up: equal to the division of every cluster in Python."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from importlib import import_module
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from jobs.actions.clusters.settle import settle
from jobs.actions.clusters.take_down import take_down_again
from jobs.actions.jobs.delete import delete_job
from jobs.backends.base import Bill
from jobs.models import Attempt, Cluster, Project, SettledUse, User
from jobs.permissions import Actor
from jobs.readers.settled_usage import SettledUsage
from jobs.readers.usage import usages
from jobs.reconcilers import billing
from jobs.spending import there_between
from jobs.statuses import ClusterStatus, JobStatus, UsageBy
from monarch_client.wire.money import Usage
from tests.factories import make_attempt, make_job, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NOW = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
# Near these, clusters come and go: the end of a month, an hour that clocks of New York show
# twice, a midnight, and now.
NEAR = [
    datetime(2026, 11, 1, tzinfo=timezone.utc),
    datetime(2026, 11, 1, 6, tzinfo=timezone.utc),
    datetime(2026, 11, 23, tzinfo=timezone.utc),
    NOW,
]
RESOURCES = [
    *[{}, {"accelerators": "H100:8"}, {"accelerators": "A100:4"}] * 3,
    {"any_of": [{"accelerators": "A100:4"}, {"accelerators": "H100:8"}]},
]
BYS = [UsageBy.DAY, UsageBy.USER, UsageBy.JOB]


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_the_database_are_those_of_a_division(seed, time_machine, monkeypatch):
    time_machine.move_to(NOW, tick=False)
    monkeypatch.setattr("jobs.readers.usage.MOST_ROWS", 6)
    project, random, actor = make_project(), Random(seed), Actor(make_user(is_superuser=True))
    people = [make_user() for _ in range(3)]
    for _ in range(30):
        _live_on(_add_cluster(project, people, random), actor, random)
    assert SettledUse.objects.count() > 3
    first, last = date(2026, 11, 1), date(2026, 11, 30)
    found = usages(actor, project, first, last, BYS)
    monkeypatch.setattr("jobs.readers.usage.settled_usage", _divide_all)
    for one, other in zip(found, usages(actor, project, first, last, BYS), strict=True):
        assert _comparable(one) == _comparable(other)


def test_a_migration_stores_the_costs_that_the_end_of_a_cluster_would_have_stored(time_machine):
    time_machine.move_to(NOW, tick=False)
    project, people, random = make_project(), [make_user()], Random(7)
    for _ in range(30):
        _add_cluster(project, people, random)
    settle(list(Cluster.objects.values_list("pk", flat=True)))
    stored = _stored()
    SettledUse.objects.all().delete()
    with connection.schema_editor() as editor:
        import_module("jobs.migrations.0050_settled_use").fill_in(None, editor)
    assert stored and _stored() == stored


def test_a_migration_reads_resources_once_that_differ_in_the_notation_of_a_number(time_machine):
    time_machine.move_to(NOW, tick=False)
    for cpus in (4, 4.0):
        attempt = make_attempt(make_job(spec={"run": "", "resources": {"cpus": cpus}}))
        _end(attempt)
    with connection.schema_editor() as editor:
        import_module("jobs.migrations.0050_settled_use").fill_in(None, editor)
    assert SettledUse.objects.count() == 2


def test_a_cluster_whose_job_another_transaction_may_delete_is_divided(monkeypatch):
    attempt = make_attempt(make_job(status=JobStatus.SUCCEEDED))
    _end(attempt)
    monkeypatch.setattr(
        QuerySet, "select_for_update", lambda rows, *, skip_locked, **_: rows.none()
    )
    settle([attempt.cluster_id or 0])
    assert not SettledUse.objects.exists()


def test_the_gpus_of_others_are_unknown_if_those_of_one_are(time_machine, monkeypatch):
    time_machine.move_to(NOW, tick=False)
    monkeypatch.setattr("jobs.readers.usage.MOST_ROWS", 1)
    project, actor = make_project(), Actor(make_user(is_superuser=True))
    for usd, resources in ((9, {}), (2, RESOURCES[-1]), (1, {})):
        job = make_job(project, spec={"run": "", "resources": resources})
        attempt = make_attempt(job)
        _end(attempt, usd=usd)
        settle([attempt.cluster_id or 0])
    [found] = usages(actor, project, NOW.date(), NOW.date(), [UsageBy.JOB])
    assert [(row.name, row.usd, row.gpu_hours) for row in found.rows] == [
        ("hello", Decimal(9), 0.0),
        ("2 others", Decimal(3), None),
    ]


def _divide_all(
    project: Project, begin: datetime, end: datetime, *, most_jobs: int
) -> SettledUsage:
    """Leave all clusters to the division in Python, the model of the sums."""
    there = there_between(begin, end).filter(project=project)
    return SettledUsage(to_divide=list(there.values_list("pk", flat=True)))


def _end(attempt: Attempt, **changes: Any) -> None:
    """Terminate the attempt's cluster, whose last bill has arrived."""
    begun, gone = NOW - timedelta(hours=1), NOW - timedelta(minutes=1)
    changes |= {"status": ClusterStatus.GONE, "billed_at": NOW}
    Cluster.objects.filter(pk=attempt.cluster_id).update(created_at=begun, gone_at=gone, **changes)


def _stored() -> list[tuple[Any, ...]]:
    rows = SettledUse.objects.order_by("pk").values_list()
    return [(*row[:-1], pytest.approx(row[-1])) for row in rows]


def _live_on(attempt: Attempt, actor: Actor, random: Random) -> None:
    """Let some of what may happen to a cluster after its end happen."""
    cluster = Cluster.objects.get(pk=attempt.cluster_id)
    settle([cluster.pk])
    if random.random() < 0.3:
        usd = Decimal(random.randint(0, 10**8)) / 10**6
        bill = Bill(usd, random.choice([0.0, 3600.0]))
        asked_at = max(NOW, cluster.billed_at or NOW)
        billing._store(cluster, random.choice([None, bill]), asked_at)
    if random.random() < 0.1:
        take_down_again(cluster, NOW + timedelta(hours=1))
    elif random.random() < 0.2 and cluster.status == ClusterStatus.GONE:
        delete_job(actor, attempt.job)


def _add_cluster(project: Project, people: list[User], random: Random) -> Attempt:
    """Create a cluster, most often of one job and with its last bill."""
    spec = {"run": "", "resources": random.choice(RESOURCES)}
    job = make_job(
        project,
        submitted_by=random.choice(people),
        spec=spec,
        num_nodes=random.randint(1, 3),
        status=JobStatus.SUCCEEDED,
    )
    begun = random.choice(NEAR) - timedelta(seconds=random.randint(0, 9_000))
    gone = min(NOW, begun + timedelta(seconds=random.choice([0, random.randint(1, 90_000)])))
    attempt = make_attempt(job)
    Attempt.objects.filter(pk=attempt.pk).update(created_at=begun, ended_at=gone)
    if random.random() < 0.2:
        again = make_attempt(job, cluster=random.choice([attempt.cluster, None]))
        Attempt.objects.filter(pk=again.pk).update(created_at=begun, ended_at=gone)
    is_over = random.random() < 0.9
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.GONE if is_over else ClusterStatus.UP,
        created_at=begun,
        gone_at=gone if is_over else None,
        billed_at=random.choice([None, gone, gone, gone]),
        usd=random.choice([None, Decimal(random.randint(1, 10**8)) / 10**6]),
        usd_per_hour=random.choice([None, Decimal("19.90")]),
        is_reusable=random.random() < 0.1,
    )
    return attempt


def _comparable(usage: Usage) -> list[object]:
    """Return its rows with sums that differ by rounding alone made equal."""
    rows = [*usage.rows, usage]
    return [
        (
            getattr(row, "key", ""),
            getattr(row, "name", ""),
            pytest.approx(row.usd, abs=Decimal("0.000002")),
            pytest.approx(row.node_hours, abs=0.0011),
            None if row.gpu_hours is None else pytest.approx(row.gpu_hours, abs=0.0011),
        )
        for row in rows
    ]
