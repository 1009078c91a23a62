"""Reports of task contexts among the frames: the latest of each rank, and no log lines."""

from __future__ import annotations

import json

import pytest
from django.db import connection

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.actions.jobs.delete import delete_job
from jobs.attempt_tokens import attempt_token
from jobs.errors import InvalidFrameError
from jobs.ground import clock
from jobs.logs.task_frames import MOST_CONTEXTS, MOST_ROWS
from jobs.models import Cluster, Job, LogHead, TaskReport
from jobs.statuses import ClusterStatus, JobStatus, Role
from monarch_client.wire.tasks import MOST_COUNTED
from tests.each_case import check_each
from tests.factories import make_actor
from tests.frame_bytes import T0, body, frame
from tests.sample_frames import sample
from tests.task_frames import actor, context, count, failure, report

pytestmark = pytest.mark.django_db


def kept(rank: int = 0) -> TaskReport:
    return TaskReport.objects.get(rank=rank)


def test_the_newest_report_of_each_rank_is_kept_and_no_line(attempt, post) -> None:
    newest = report(10, context(objects=4))
    assert post(newest, frame(1), report(0), report(3, rank=1), sample(0)) == {"0": 1}
    assert kept().latest["contexts"] == [context(objects=4)]
    assert (kept().at.timestamp(), kept(1).at.timestamp()) == (T0 + 10, T0 + 3)
    assert LogHead.objects.get(pk=attempt.pk).next_line == 2
    post(report(5))
    assert kept().latest["contexts"] == [context(objects=4)]
    post(report(20))
    assert kept().latest["contexts"] == [context()]


def test_a_clock_that_is_ahead_does_not_silence_a_rank(attempt, post) -> None:
    post({**report(0), "t": 2e10})
    assert kept().at <= clock.now()


def test_clients_of_other_versions_are_understood(attempt, post) -> None:
    newer = context(novelty=7, tasks=[count(novelty=7)])
    older = context()
    del older["tasks_left_out"]
    unreadable = context(tasks=[{"name": 7}])
    post(report(0, newer, older, unreadable, context(actors=[actor(pid=-1)]), left_out=5))
    assert kept().latest == {"contexts": [context(), context()], "left_out": 7}


def test_long_lists_and_texts_are_cut(attempt, post) -> None:
    rows = [count(str(number)) for number in range(MOST_ROWS + 3)]
    post(report(0, context(tasks=rows, tasks_left_out=1, actors=[actor(why="x\0" * 5000)])))
    (found,) = kept().latest["contexts"]
    assert (len(found["tasks"]), found["tasks_left_out"]) == (MOST_ROWS, 4)
    assert len(found["actors"][0]["why"]) == 4000


def test_what_is_no_report_is_refused(attempt, post) -> None:
    def refused(fields) -> None:
        with pytest.raises(InvalidFrameError):
            post({**report(0), **fields})

    check_each(
        (
            ({"contexts": None},),
            ({"contexts": [{}] * (MOST_CONTEXTS + 1)},),
            ({"left_out": -1},),
            ({"left_out": True},),
            ({"rank": 2},),
        ),
        refused,
    )


def test_a_report_stays_after_the_end_and_goes_with_its_job(attempt, post) -> None:
    post(report(0), frame(1, "end", reason="COMPLETED", exit_code=0))
    Cluster.objects.update(status=ClusterStatus.GONE)
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=clock.now())
    assert kept().attempt_id == attempt.pk
    job = Job.objects.get(pk=attempt.job_id)
    delete_job(make_actor(job.project, Role.ADMIN), job)
    assert not TaskReport.objects.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"mean_seconds": 0.25', '"mean_seconds": 1e999'),
        ('"mean_seconds": 0.25', '"mean_seconds": Infinity'),
        ('"mean_seconds": 0.25', '"mean_seconds": NaN'),
        ('"pid": 71,', '"pid": 71, "\\ud800": 1,'),
    ],
)
def test_a_report_that_cannot_be_read_costs_no_line(attempt, before, after) -> None:
    raw = json.dumps(report(0, context(), context())).replace(before, after, 1)
    ingest_frames(
        attempt.pk,
        attempt_token(attempt.job_id, attempt.number),
        body(frame(1)) + raw.encode() + b"\n",
    )
    assert LogHead.objects.get(pk=attempt.pk).next_line == 2
    assert kept().latest == {"contexts": [context()], "left_out": 1}


def test_a_state_that_the_database_refuses_costs_no_line(attempt, post, monkeypatch) -> None:
    def fail(*_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'Infinity'::jsonb")

    monkeypatch.setattr("jobs.actions.ingest.ingest_frames.store_tasks", fail)
    assert post(frame(1), report(0)) == {"0": 1}
    assert LogHead.objects.get(pk=attempt.pk).next_line == 2


def test_counts_and_times_past_their_limits_are_clamped(attempt, post) -> None:
    rows = [count(str(number)) for number in range(MOST_ROWS + 3)]
    times = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00")
    full = context(
        tasks=rows, tasks_left_out=MOST_COUNTED, failures=[failure(at=each) for each in times]
    )
    post(report(0, full, context(pid=-1), left_out=MOST_COUNTED))
    (found,) = kept().latest["contexts"]
    assert (found["tasks_left_out"], kept().latest["left_out"]) == (MOST_COUNTED, MOST_COUNTED)
    shown = [each["at"] for each in found["failures"]]
    assert shown == ["1970-01-01T00:00:00Z", "3000-01-01T00:00:00Z"]
