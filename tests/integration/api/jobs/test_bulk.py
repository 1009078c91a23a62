"""POST /projects/{slug}/jobs/actions."""

from __future__ import annotations

import pytest

from jobs.models import Job
from jobs.statuses import JobStatus
from tests.factories import make_job
from tests.integration.api.conftest import assert_problem

PATH = "/projects/rl/jobs/actions"


def test_one_request_acts_on_many_jobs_and_reports_each(maintainer, project):
    queued, ended = make_job(project), make_job(project, status=JobStatus.FAILED)
    response = maintainer.post(PATH, {"action": "cancel", "jobs": [queued.pk, ended.pk]})
    assert response.status_code == 200
    done, refused = response.json()["results"]
    assert (done["job"], done["result"], done["message"]) == (queued.pk, "done", "Cancelled.")
    assert (refused["result"], refused["code"]) == ("refused", "job_already_final")


def test_priorities_are_set_together(maintainer, project):
    numbers = [make_job(project).pk for _ in range(2)]
    maintainer.post(PATH, {"action": "prioritize", "jobs": numbers, "priority": 80})
    assert list(Job.objects.values_list("priority", flat=True)) == [80, 80]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "cancel"},
        {"action": "cancel", "jobs": []},
        {"action": "cancel", "jobs": [0]},
        {"action": "dance", "jobs": [1]},
        {"action": "prioritize", "jobs": [1]},
        {"action": "cancel", "jobs": [1], "priority": 5},
        {"action": "cancel", "jobs": list(range(1, 202))},
    ],
)
def test_a_bulk_request_that_makes_no_sense_is_a_problem(maintainer, body):
    assert_problem(maintainer.post(PATH, body), 400, "invalid_request")
