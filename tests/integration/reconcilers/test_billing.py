"""Costs of a cluster are its backend's own figure, divided among its attempts."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import pytest
from django.db.models import Sum
from django.utils import timezone

from jobs.backends import registry
from jobs.backends.base import Bill
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import BackendUnavailableError, StillLookingError
from jobs.models import Attempt, Cluster, SettledUse
from jobs.permissions import Actor
from jobs.readers.job_page import job_page
from jobs.reconcilers import billing
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def redis(redis_client) -> Any:
    return redis_client


@pytest.fixture
def bill(time_machine):
    """Return a function that makes all bills that are due after that time."""

    def run(after: timedelta = timedelta()) -> list[int]:
        time_machine.move_to(timezone.now() + after)
        due = [cluster.pk for name in registry.keeping() for cluster in billing.due(name)]
        billing.step()
        return due

    return run


def test_of_many_clusters_those_are_billed_first_whose_bill_is_the_oldest(fake, bill, monkeypatch):
    monkeypatch.setattr(billing, "AT_ONCE", 2)
    fake.set_price("1.00")
    clusters = [make_attempt(make_job(status=JobStatus.RUNNING)).cluster for _ in range(5)]
    numbers = [cluster.pk for cluster in clusters if cluster is not None]
    rounds = [bill(2 * MINUTE)]
    rounds += [bill(timedelta(seconds=10)) for _ in range(2)]
    assert [len(each) for each in rounds] == [2, 2, 1]
    assert sorted(chain(*rounds)) == sorted(numbers)


@pytest.mark.feature("S2.7")
def test_what_an_attempt_has_cost_in_the_end_is_what_its_backend_reports(
    fake, submitted, tick, bill
):
    fake.set_price("3.60")
    tick()
    push(fake, submitted)
    tick()
    bill(10 * MINUTE)
    attempt = Attempt.objects.select_related("cluster").get()
    cluster = attempt.cluster
    assert cluster is not None
    assert Decimal("0.6") < cluster.usd == attempt.usd < Decimal("0.61")
    assert cluster.usd_per_hour == Decimal("3.60")
    fake.finish(cluster.name)
    push(fake, submitted)
    for _ in range(3):
        tick()
    assert status_of(submitted) == JobStatus.SUCCEEDED
    # The bill of a cluster in its last seconds may be more than what is charged in the end.
    assert bill() == []
    assert bill(2 * billing.SETTLED_AFTER) == [cluster.pk]
    reported = fake.bill(cluster.name, cluster.created_at)
    attempt.refresh_from_db()
    assert attempt.usd == reported.usd
    page = job_page(Actor(submitted.submitted_by), submitted.project.slug, submitted.pk)
    assert (page.job.usd, page.attempts[0].usd) == (reported.usd, reported.usd)
    # The bill is final.
    assert bill(10 * MINUTE) == []


@pytest.mark.parametrize("has_price", [True, False])
def test_the_cost_of_a_cluster_settles_when_nothing_of_it_is_estimated(
    fake, submitted, tick, bill, time_machine, has_price
):
    # Far from midnight: a cluster of two days is divided.
    time_machine.move_to(timezone.now().replace(hour=12) + timedelta(days=1))
    fake.set_price("3.60")
    tick()
    push(fake, submitted)
    tick()
    bill(10 * MINUTE)
    if not has_price:
        Cluster.objects.update(usd_per_hour=None)
    cluster = Cluster.objects.get()
    assert not SettledUse.objects.exists()
    fake.finish(cluster.name)
    push(fake, submitted)
    for _ in range(3):
        tick()
    assert SettledUse.objects.exists() != has_price
    bill(2 * billing.SETTLED_AFTER)
    cluster.refresh_from_db()
    settled = SettledUse.objects.get(cluster=cluster)
    assert settled.micro_usd == (cluster.usd or 0) * 1_000_000
    assert (settled.job, settled.user) == (submitted, submitted.submitted_by)


def test_a_cluster_is_billed_once_a_minute(fake, submitted, tick, bill):
    tick()
    assert len(bill()) == 1
    assert bill(MINUTE / 2) == []
    assert len(bill(MINUTE)) == 1


def warm_cluster(fake, minutes: float) -> tuple[Cluster, list[Attempt]]:
    """Create an hour-old cluster with two attempts of `minutes` each, the second just ended."""
    now = timezone.now()
    first = make_attempt(
        make_job(status=JobStatus.SUCCEEDED), ended_at=now - timedelta(minutes=60 - minutes)
    )
    cluster = first.cluster
    assert cluster is not None
    second = make_attempt(
        make_job(first.job.project, status=JobStatus.SUCCEEDED), cluster=cluster, ended_at=now
    )
    for attempt, ago in ((first, 60.0), (second, minutes)):
        begin = now - timedelta(minutes=ago)
        Attempt.objects.filter(pk=attempt.pk).update(created_at=begin)
    rows = Cluster.objects.filter(pk=cluster.pk)
    began = now - timedelta(hours=1)
    rows.update(is_reusable=True, status=ClusterStatus.UP, created_at=began)
    return rows.get(), [first, second]


def test_attempts_of_one_cluster_pay_for_their_time_and_the_project_for_the_rest(
    fake, bill, monkeypatch, time_machine
):
    time_machine.move_to(timezone.now(), tick=False)
    monkeypatch.setattr(FakeBackend, "bill", lambda *_: Bill(Decimal(6), 3600.0))
    cluster, attempts = warm_cluster(fake, minutes=20)
    bill()
    for attempt in attempts:
        attempt.refresh_from_db()
        assert round(attempt.usd, 3) == 2
    cluster.refresh_from_db()
    assert cluster.usd == cluster.usd_per_hour == 6
    paid = cluster.attempts.aggregate(usd=Sum("usd"))["usd"]
    assert round(cluster.usd - paid, 3) == 2


@pytest.mark.parametrize("error", [StillLookingError(), BackendUnavailableError("Away.")])
def test_a_backend_that_cannot_report_now_is_queried_again(fake, submitted, tick, bill, error):
    def refuse(*_: object) -> None:
        raise error

    tick()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeBackend, "bill", refuse)
        bill()
        assert Cluster.objects.get().billed_at is None
    assert len(bill()) == 1
    assert Cluster.objects.get().usd is not None


def test_a_cluster_that_never_cost_anything_is_queried_about_for_an_hour(fake, bill, monkeypatch):
    monkeypatch.setattr(FakeBackend, "bill", lambda *_: None)
    attempt = make_attempt(make_job(status=JobStatus.CANCELLED), ended_at=timezone.now())
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.GONE, gone_at=timezone.now() - MINUTE
    )
    assert bill() == bill(MINUTE) == [attempt.cluster_id]
    bill(timedelta(hours=1))
    assert bill(MINUTE) == []


def test_a_backend_that_costs_nothing_sends_no_bill(bill, fake):
    make_attempt(make_job(status=JobStatus.RUNNING, backend_name="local"))
    assert bill() == []


def test_a_cluster_that_goes_while_bills_are_requested_gets_its_last_one(
    fake, bill, time_machine, monkeypatch
):
    """Terminate a cluster during the query: the row and the answer are from before its end."""
    slow, cluster = (make_attempt(make_job(status=JobStatus.RUNNING)).cluster for _ in range(2))
    requested: list[str] = []

    def slowly(_: FakeBackend, name: str, __: object) -> Bill | None:
        requested.append(name)
        if name == slow.name:
            if requested == [name]:
                gone = {"status": ClusterStatus.GONE, "gone_at": timezone.now()}
                Cluster.objects.filter(pk=cluster.pk).update(**gone)
                time_machine.move_to(timezone.now() + MINUTE)
            return Bill(Decimal(1), 60.0)
        return None if requested.count(name) == 1 else Bill(Decimal(6), 42.0)

    monkeypatch.setattr(FakeBackend, "bill", slowly)
    bill()
    assert requested.count(cluster.name) == 1
    bill(MINUTE)
    cluster.refresh_from_db()
    assert cluster.usd == 6


def test_one_bill_that_cannot_be_kept_keeps_no_other(fake, bill, monkeypatch):
    broken, sound = (make_attempt(make_job(status=JobStatus.RUNNING)).cluster for _ in range(2))

    def fail_for_one(_: FakeBackend, name: str, __: object) -> Bill:
        if name == broken.name:
            raise ZeroDivisionError
        return Bill(Decimal(6), 42.0)

    monkeypatch.setattr(FakeBackend, "bill", fail_for_one)
    bill()
    sound.refresh_from_db()
    broken.refresh_from_db()
    assert (broken.billed_at, sound.usd) == (None, 6)


def test_bills_of_a_backend_that_hangs_keep_those_of_no_other(fake, monkeypatch):
    make_attempt(make_job(status=JobStatus.RUNNING))
    kept = {"fake": fake, "other": fake}
    monkeypatch.setattr(registry, "keeping", lambda: kept)
    requested: list[str] = []

    def hang(_: FakeBackend, name: str, __: object) -> Bill | None:
        requested.append(name)
        if len(requested) == 1:
            # What the next tick finds meanwhile.
            Cluster.objects.exclude(name=name).update(backend_name="other")
            billing.step()
        return None

    monkeypatch.setattr(FakeBackend, "bill", hang)
    make_attempt(make_job(status=JobStatus.RUNNING))
    billing.step()
    first, second = Cluster.objects.order_by("pk").values_list("name", flat=True)
    assert requested[:2] == [first, second]
