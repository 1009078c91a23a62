"""GET .../jobs/{id}/tasks: task contexts by rank, during a job and after it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, TaskReport
from jobs.readers.tasks import MOST_CONTEXTS, SILENT_AFTER
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body
from tests.task_frames import context, report


@pytest.fixture
def attempt(project) -> Attempt:
    return make_attempt(make_job(project, status=JobStatus.RUNNING, num_nodes=20))


def reported(attempt: Attempt, *frames) -> None:
    """Ingest the frames, as if they were sent just now."""
    token = attempt_token(attempt.job_id, attempt.number)
    now = clock.now().timestamp()
    ingest_frames(attempt.pk, token, body(*({**each, "t": now} for each in frames)))


def tasks(viewer, of: Attempt, **query):
    answer = viewer.get(f"/projects/rl/jobs/{of.job_id}/tasks", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_contexts_are_listed_by_rank_with_what_they_reported(viewer, attempt) -> None:
    reported(attempt, {**report(0), "rank": 1}, report(0, context("72-1"), context(), left_out=3))
    found = tasks(viewer, attempt)
    assert (found["attempt"], found["is_over"], found["left_out"]) == (1, False, 3)
    order = [(each["rank"], each["name"], each["is_silent"]) for each in found["contexts"]]
    assert order == [(0, "72-1", False), (0, "71-1", False), (1, "71-1", False)]
    own = {"rank", "at", "is_silent"}
    assert {key: found["contexts"][1][key] for key in context()} == context()
    assert set(found["contexts"][1]) == {*context(), *own}


def test_an_open_context_without_reports_is_silent_until_its_attempt_is_over(
    viewer, attempt
) -> None:
    reported(attempt, report(0, context(), context("72-1", is_open=False)))
    TaskReport.objects.update(at=clock.now() - SILENT_AFTER - timedelta(seconds=1))
    assert [each["is_silent"] for each in tasks(viewer, attempt)["contexts"]] == [True, False]
    attempt.ended_at = clock.now()
    attempt.save()
    found = tasks(viewer, attempt)
    assert found["is_over"]
    assert [each["is_silent"] for each in found["contexts"]] == [False, False]


def test_a_job_without_contexts_has_none(viewer, attempt) -> None:
    assert tasks(viewer, attempt)["contexts"] == []
    assert viewer.get(f"/projects/rl/jobs/{attempt.job_id}/tasks?attempt=9").status_code == 404


def test_many_contexts_are_counted_and_not_all_listed(viewer, attempt) -> None:
    small = context(tasks=[], actors=[], hosts=[], failures=[])
    for rank in range(20):
        reported(attempt, {**report(0, *[small] * 16), "rank": rank})
    found = tasks(viewer, attempt)
    assert len(found["contexts"]) == MOST_CONTEXTS
    assert found["left_out"] == 20 * 16 - MOST_CONTEXTS
