"""The notices of a user with many jobs: how much the database reads for each look."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.ground import clock
from jobs.permissions import Actor
from jobs.readers.job_notices import job_notices
from jobs.statuses import JobStatus, Role
from tests.factories import make_job, make_member, make_project
from tests.integration.readers.many_jobs import make_copies, rows_read

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

JOBS, MOST_READ = 3_000, 50
# After so many times a prepared statement gets a plan for all values.
TIMES = 10


def test_a_look_at_the_own_jobs_does_not_read_those_that_ended_long_ago():
    project = make_project("rl")
    ada = make_member(project, Role.MEMBER, username="ada")
    long_ago = clock.now() - timedelta(days=9)
    ended = make_job(project, submitted_by=ada, status=JobStatus.SUCCEEDED, ended_at=long_ago)
    make_copies(ended, JOBS)
    own = [
        make_job(project, submitted_by=ada),
        make_job(project, submitted_by=ada, status=JobStatus.RUNNING),
        make_job(project, submitted_by=ada, status=JobStatus.FAILED),
    ]
    for _ in range(TIMES):
        job_notices(Actor(user=ada), [], own=True)
    before = rows_read()
    found = job_notices(Actor(user=ada), [], own=True)
    assert {each.id for each in found} == {job.pk for job in own}
    assert rows_read() - before <= MOST_READ
