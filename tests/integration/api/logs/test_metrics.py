"""GET .../jobs/{id}/metrics: the latest of all hosts, the history of one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, HostMetrics, Worker
from jobs.statuses import JobStatus, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import T0, body
from tests.sample_frames import gpu, sample


@pytest.fixture
def attempt(project) -> Attempt:
    attempt = make_attempt(make_job(project, status=JobStatus.RUNNING, num_nodes=3))
    for rank in range(3):
        Worker.objects.create(
            attempt=attempt, rank=rank, mesh="trainers", status=WorkerStatus.RUNNING
        )
    return attempt


def reported(attempt: Attempt, *samples) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(*samples))


def metrics(viewer, of: Attempt, **query):
    answer = viewer.get(f"/projects/rl/jobs/{of.job_id}/metrics", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_every_host_has_its_latest_also_one_that_reported_nothing_yet(viewer, attempt) -> None:
    reported(attempt, sample(0, cpu=12.5, gpus=[gpu(0, 97), gpu(1, None)]), sample(0, rank=1))
    found = metrics(viewer, attempt)
    assert (found["attempt"], found["is_over"], found["series"]) == (1, False, None)
    first, second, third = found["hosts"]
    assert (first["rank"], first["mesh"], first["cpu"], first["cpus"]) == (0, "trainers", 12.5, 8)
    assert [each["utilization"] for each in first["gpus"]] == [97, None]
    assert second["gpus"] == []
    assert (third["rank"], third["at"], third["cpu"]) == (2, None, None)


def test_the_history_of_a_host_comes_by_columns(viewer, attempt) -> None:
    for number in range(40):
        reported(attempt, sample(number * 10, cpu=float(number), gpus=[gpu(0, number)]))
    series = metrics(viewer, attempt, rank=0)["series"]
    columns = series["columns"]
    assert (series["rank"], series["step_s"]) == (0, 0)
    assert columns["t"] == [T0 + number * 10 for number in range(40)]
    assert columns["cpu"] == [float(number) for number in range(40)]
    assert columns["gpu"] == [columns["cpu"]]
    assert set(columns["memory"]) == {25.0}
    assert {len(values) for name, values in columns.items() if not name.startswith("gpu")} == {40}
    assert metrics(viewer, attempt, rank=2)["series"] is None


def test_a_host_that_falls_silent_is_reported_but_not_after_the_end(viewer, attempt) -> None:
    reported(attempt, sample(0), sample(0, rank=1))
    HostMetrics.objects.filter(rank=1).update(at=clock.now() - timedelta(seconds=5))
    assert [host["is_silent"] for host in metrics(viewer, attempt)["hosts"]] == [True, False, False]
    Attempt.objects.update(ended_at=clock.now())
    found = metrics(viewer, attempt)
    assert found["is_over"]
    assert not any(host["is_silent"] for host in found["hosts"])
    assert found["hosts"][0]["cpu"] == 50.0


def test_each_attempt_has_its_own_and_the_newest_is_shown(viewer, attempt) -> None:
    reported(attempt, sample(0, cpu=11.0))
    Attempt.objects.update(ended_at=clock.now())
    # As long as the job is not, another attempt may follow.
    assert not metrics(viewer, attempt)["is_final"]
    second = make_attempt(attempt.job)
    reported(second, sample(0, cpu=22.0))
    assert metrics(viewer, attempt)["hosts"][0]["cpu"] == 22.0
    first = metrics(viewer, attempt, attempt=1)
    assert (first["hosts"][0]["cpu"], first["is_over"], first["is_final"]) == (11.0, True, True)


@pytest.mark.parametrize(
    ("query", "status"),
    [({"attempt": 9}, 404), ({"attempt": "x"}, 400), ({"rank": -1}, 400), ({"rank": 2**40}, 400)],
)
def test_what_is_not_there_is_reported(viewer, attempt, query, status) -> None:
    answer = viewer.get(f"/projects/rl/jobs/{attempt.job_id}/metrics", query)
    assert answer.status_code == status


def test_a_job_that_never_began_has_no_hosts(viewer, project) -> None:
    job = make_job(project)
    answer = viewer.get(f"/projects/rl/jobs/{job.pk}/metrics").json()
    assert answer == {
        "attempt": None,
        "is_over": False,
        "is_final": False,
        "hosts": [],
        "series": None,
        "gpu_use": None,
    }
