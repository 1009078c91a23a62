"""Cached rows of one reader of the queue: only changed rows are read again."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.jobs.report_waits import changed_waits
from jobs.ground import clock
from jobs.models import Job
from jobs.models.startable_jobs import startable_jobs
from jobs.queueing.limits import PRICED, REQUEST_COLUMNS
from jobs.queueing.queued_rows import QueuedRow, QueuedRows
from jobs.queueing.snapshot import load_snapshot
from jobs.scheduling.causes import ReportedBlocker
from jobs.scheduling.snapshot import Wait
from tests.factories import make_job, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.1")]


@pytest.fixture
def remembered() -> QueuedRows:
    return QueuedRows()


def read(rows: QueuedRows) -> dict[int, QueuedRow]:
    return dict(rows.read(startable_jobs(clock.now()), REQUEST_COLUMNS))


def test_what_has_not_changed_is_not_read_again(remembered):
    jobs = [make_job() for _ in range(3)]
    before = read(remembered)
    with CaptureQueriesContext(
        connection,
    ) as requested:
        after = read(remembered)
    assert len(requested) == 1
    assert list(after) == [job.pk for job in jobs]
    assert all(after[pk] is before[pk] for pk in before)


def test_a_row_that_changed_is_read_again_also_within_one_transaction(remembered):
    changed, same = make_job(priority=10), make_job()
    before = read(remembered)
    for priority in (20, 30):
        Job.objects.filter(pk=changed.pk).update(priority=priority)
        after = read(remembered)
        assert after[changed.pk].priority == priority
        assert after[same.pk] is before[same.pk]


def test_a_later_job_is_in_its_position_and_a_job_that_leaves_is_gone(remembered):
    project = make_project()
    first, second, third = (make_job(project) for _ in range(3))
    Job.objects.filter(pk=second.pk).update(held=True)
    assert list(read(remembered)) == [first.pk, third.pk]
    Job.objects.filter(pk=second.pk).update(held=False)
    fourth = make_job(project)
    assert list(read(remembered)) == [first.pk, second.pk, third.pk, fourth.pk]
    Job.objects.filter(pk=first.pk).update(status="PROVISIONING")
    assert list(read(remembered)) == [second.pk, third.pk, fourth.pk]


def test_an_empty_queue_is_remembered_as_one(remembered):
    job = make_job()
    assert list(read(remembered)) == [job.pk]
    job.delete()
    assert read(remembered) == {}
    assert read(remembered) == {}


def test_jobs_that_ask_for_the_same_share_what_is_known_of_it(remembered):
    project = make_project()
    one = make_job(project)
    rows = read(remembered)
    later = make_job(project, submitted_by=one.submitted_by)
    assert read(remembered)[later.pk].requested is rows[one.pk].requested


def test_what_counts_of_a_job_is_read_anew_once_prices_count(remembered):
    job = make_job()
    Job.objects.filter(pk=job.pk).update(price_key="abc")
    assert read(remembered)[job.pk].requested.price_key == ""
    priced = remembered.read(startable_jobs(clock.now()), PRICED)
    assert priced[job.pk].requested.price_key == "abc"


def test_a_snapshot_with_what_was_known_before_is_that_of_now(remembered):
    project = make_project()
    jobs = [make_job(project, priority=number) for number in range(5)]
    load_snapshot(rows=remembered)
    Job.objects.filter(pk=jobs[1].pk).update(priority=90, num_nodes=7)
    jobs[2].delete()
    make_job(project)
    known, fresh = load_snapshot(rows=remembered), load_snapshot()

    def reported(snapshot):
        # Shapes are compared by identity, and are made for each snapshot.
        return [{**asdict(job), "shape": asdict(job.shape)} for job in snapshot.queued]

    assert reported(known) == reported(fresh)
    assert len(known.queued) == 5


def test_requests_of_jobs_that_have_left_are_forgotten_and_new_ones_shared(remembered, monkeypatch):
    monkeypatch.setattr("jobs.queueing.queued_rows._ALIKE_AT_LEAST", 0)
    project = make_project()
    left = [make_job(project, num_nodes=number) for number in range(1, 6)]
    stays = make_job(project, num_nodes=9)
    read(remembered)
    for job in left:
        job.delete()
    read(remembered)
    read(remembered)
    same = make_job(project, num_nodes=9, submitted_by=stays.submitted_by)
    rows = read(remembered)
    assert len(remembered._alike) == 1
    assert rows[same.pk].requested is rows[stays.pk].requested


def test_only_changed_reasons_are_written(remembered):
    said, unsaid = (make_job(wait_reason="CAPACITY", message="Needs 9 nodes.") for _ in range(2))
    waits = [
        Wait(said.pk, ReportedBlocker("Needs 9 nodes.")),
        Wait(unsaid.pk, ReportedBlocker("Needs 8 nodes.")),
    ]
    changed = changed_waits(waits, read(remembered), {})
    assert changed == {("CAPACITY", "Needs 8 nodes."): [unsaid.pk]}
