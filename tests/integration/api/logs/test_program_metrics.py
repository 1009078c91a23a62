"""GET .../jobs/{id}/program-metrics: the metrics in the lines of a program."""

from __future__ import annotations

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, Job, ProgramSeries
from jobs.policies.program_metrics import MOST_RECENT, MOST_SERIES
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame


@pytest.fixture
def attempt(project) -> Attempt:
    return make_attempt(make_job(project, status=JobStatus.RUNNING, num_nodes=300))


def tell(attempt: Attempt, *frames) -> None:
    ingest_frames(attempt.pk, attempt_token(attempt.job_id, attempt.number), body(*frames))


def found(viewer, of: Attempt, **query):
    answer = viewer.get(f"/projects/rl/jobs/{of.job_id}/program-metrics", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_lines_become_series_once_and_a_name_has_its_history(viewer, attempt) -> None:
    frames = [frame(seq, text=f"step={seq} loss={1 / seq} acc=0.5") for seq in range(1, 4)]
    tell(attempt, *frames)
    # Sent again, since the answer was lost.
    tell(attempt, *frames, frame(4, text="step=4 loss=nan"), frame(1, rank=1, text="step=1 loss=9"))
    series = found(viewer, attempt)["series"]
    assert [(each["name"], each["rank"], each["step"], each["value"]) for each in series] == [
        ("acc", 0, 3, 0.5),
        ("loss", 0, 4, None),
        ("loss", 1, 1, 9.0),
    ]
    assert {tuple(each["t"]) for each in series} == {()}
    first, second = found(viewer, attempt, name="loss")["series"]
    assert first["steps"] == [1, 2, 3, 4]
    assert first["values"] == [1.0, 0.5, 1 / 3, None]
    assert (first["lowest"], first["highest"]) == (1 / 3, 1.0)
    assert found(viewer, attempt, name="loss", rank=1)["series"] == [second]


def test_a_line_that_goes_on_reports_nothing(viewer, attempt) -> None:
    tell(attempt, frame(1, text="step=1 loss=0.2", more=True), frame(2, text="5"))
    assert found(viewer, attempt)["series"] == []


def test_the_history_is_folded_across_requests(viewer, attempt) -> None:
    for seq in range(1, 2 * MOST_RECENT + 3):
        tell(attempt, frame(seq, text=f"step={seq} loss={seq}"))
    row = ProgramSeries.objects.get()
    assert (len(row.old), len(row.recent)) == (2 * MOST_RECENT, 2)
    (series,) = found(viewer, attempt, name="loss")["series"]
    assert series["values"] == [float(seq) for seq in range(1, 2 * MOST_RECENT + 3)]


def test_further_names_and_ranks_are_left_out_and_reported(viewer, attempt) -> None:
    tell(attempt, *(frame(1, rank=rank, text="step=1 loss=1") for rank in range(MOST_SERIES)))
    assert found(viewer, attempt)["is_full"]
    tell(attempt, frame(1, rank=299, text="step=1 loss=1"), frame(2, text="step=2 loss=2"))
    series = found(viewer, attempt)["series"]
    assert len(series) == MOST_SERIES
    assert series[0]["step"] == 2


def test_they_stay_after_the_end(viewer, attempt) -> None:
    tell(attempt, frame(1, text="step=1 loss=1"))
    Attempt.objects.update(ended_at=clock.now())
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=clock.now())
    answer = found(viewer, attempt)
    assert (answer["is_final"], len(answer["series"])) == (True, 1)
    missing = viewer.get(f"/projects/rl/jobs/{attempt.job_id}/program-metrics", {"attempt": 9})
    assert missing.status_code == 404
