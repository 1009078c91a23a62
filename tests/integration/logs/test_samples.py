"""Samples of hosts among the frames: the latest, a bounded history, and nothing of the log's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.jobs.delete import delete_job
from jobs.errors import InvalidFrameError
from jobs.ground import clock
from jobs.models import Attempt, Cluster, GpuUse, HostMetrics, Job, LogHead
from jobs.policies.series import MOST_RECENT
from jobs.statuses import ClusterStatus, JobStatus, Role
from tests.factories import make_actor
from tests.frame_bytes import T0, frame
from tests.sample_frames import gpu, sample

pytestmark = pytest.mark.django_db


def rows(attempt: Attempt) -> dict[int, HostMetrics]:
    return {row.rank: row for row in HostMetrics.objects.filter(attempt=attempt)}


def test_the_newest_sample_of_each_host_is_its_latest(attempt, post) -> None:
    post(sample(0, cpu=10.0), sample(20, cpu=30.0), sample(10, cpu=20.0), sample(5, rank=1))
    stored = rows(attempt)
    assert {rank: row.latest["cpu"] for rank, row in stored.items()} == {0: 30.0, 1: 50.0}
    post(sample(30, cpu=40.0, gpus=[gpu(0, 97)]))
    row = rows(attempt)[0]
    assert row.latest["gpus"][0]["utilization"] == 97
    assert [point[2] for point in row.recent] == [30.0, 40.0]
    assert row.at.timestamp() == T0 + 30


def test_the_gpu_use_of_all_hosts_is_stored_beside_them(attempt, post) -> None:
    post(sample(0, gpus=[gpu(0, 90), gpu(1, 100)]), sample(2, rank=1, gpus=[gpu(0, 45)]))
    post(sample(4, rank=1), sample(60, gpus=[gpu(0, 1.0)]))
    use = GpuUse.objects.get(attempt=attempt).use
    assert [point[1:] for point in use.points] == [[2, 70.0, 45], [1, 1.0, 1.0]]
    assert (use.at.timestamp(), use.busy_at.timestamp()) == (T0 + 60, T0 + 2)


def test_a_job_without_gpus_has_no_gpu_use(attempt, post) -> None:
    post(sample(0), sample(0, rank=1))
    assert not GpuUse.objects.exists()


def test_samples_are_neither_acknowledged_nor_lines(attempt, post) -> None:
    assert post(sample(0)) == {}
    assert post(sample(10), frame(1), sample(20)) == {"0": 1}
    head = LogHead.objects.get(pk=attempt.pk)
    assert (head.next_line, head.acked) == (2, {"0": 1})
    assert rows(attempt)[0].at.timestamp() == T0 + 20


def test_a_sample_that_comes_again_or_too_late_changes_nothing(attempt, post) -> None:
    post(sample(10, cpu=1.0))
    for at in (10, 10.5, 3):
        post(sample(at, cpu=2.0))
    row = rows(attempt)[0]
    assert (row.latest["cpu"], len(row.recent)) == (1.0, 1)


def test_a_clock_that_is_ahead_does_not_silence_its_host(attempt, post) -> None:
    post({**sample(0), "t": 2e10})
    row = rows(attempt)[0]
    assert row.at <= clock.now()
    HostMetrics.objects.update(at=row.at - timedelta(seconds=10))
    post({**sample(0, cpu=7.0), "t": 2e10})
    assert rows(attempt)[0].latest["cpu"] == 7.0


def test_what_has_become_long_is_folded_into_the_history(attempt, post) -> None:
    for number in range(MOST_RECENT + 3):
        post(sample(number * 10, cpu=float(number)))
    row = rows(attempt)[0]
    assert [point[2] for point in row.history] == [float(n) for n in range(MOST_RECENT)]
    assert len(row.recent) == 3


def test_a_thousand_hosts_cost_no_more_statements_than_one(attempt, post) -> None:
    Job.objects.filter(pk=attempt.job_id).update(num_nodes=1000)
    with CaptureQueriesContext(
        connection,
    ) as one:
        post(sample(0))
    with CaptureQueriesContext(connection) as many:
        post(*(sample(10, rank=rank) for rank in range(1000)))
    assert HostMetrics.objects.count() == 1000
    assert len(many) <= len(one)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpu": 101},
        {"cpu": -1},
        {"cpu": float("nan")},
        {"cpu": float("inf")},
        {"cpu": 10**400},
        {"cpu": "9"},
        {"cpu": True},
        {"memory_used": 1.5},
        {"memory_total": 2**61},
        {"net_in": 1e300},
        {"gpus": {}},
        {"gpus": [1]},
        {"gpus": [gpu(n, 1) for n in range(65)]},
        {"gpus": [gpu(0, float("nan"))]},
        {"gpus": [{**gpu(0, 1), "name": "x" * 101}]},
        {"gpus": [{**gpu(0, 1), "name": ["x"]}]},
        {"rank": 2},
        {"t": -1},
        {"seq": None},
        {"seq": 1},
        {"kind": "metric"},
    ],
)
def test_a_sample_that_is_not_sound_is_refused(attempt, post, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidFrameError):
        post(frame(1), {**sample(0), **wrong})
    assert not HostMetrics.objects.exists()


def test_unrequested_answers_are_not_stored(attempt, post) -> None:
    post({**sample(0, gpus=[{**gpu(0, 1), "name": "a\x00b\ud800", "more": "x" * 5000}]), "x": "y"})
    latest = rows(attempt)[0].latest
    assert set(latest) == {
        *("cpu", "cpus", "memory_used", "memory_total", "disk_used", "disk_total"),
        *("net_in", "net_out", "gpus"),
    }
    assert latest["gpus"][0]["name"] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert "more" not in latest["gpus"][0]


def test_metrics_stay_after_the_end_and_go_with_their_job(attempt, post) -> None:
    post(sample(0), frame(1, "end", reason="COMPLETED", exit_code=0))
    Cluster.objects.update(status=ClusterStatus.GONE)
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=clock.now())
    assert rows(attempt)
    job = Job.objects.get(pk=attempt.job_id)
    delete_job(make_actor(job.project, Role.ADMIN), job)
    assert not HostMetrics.objects.exists()
