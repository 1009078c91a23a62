"""The job table of a large project: how much the database reads for a filter few jobs match."""

from __future__ import annotations

import pytest
from django.db import connection

from jobs.models import Project
from jobs.readers.job_filter import JobFilter, matching_counts
from jobs.readers.job_table import job_table
from jobs.statuses import JobStatus, Role
from tests.each_case import check_each
from tests.factories import make_actor, make_job, make_project
from tests.integration.readers.many_jobs import make_copies, rows_read

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

JOBS = 3_000
# After so many times a prepared statement gets a plan for all values.
TIMES = 10


@pytest.fixture
def project() -> Project:
    """Create a project with many jobs, one of which has what the filters name."""
    project = make_project()
    values = {"status": JobStatus.FAILED, "submitted_by": make_actor(project).user}
    rare = make_job(
        project, **values, stop_reason="SETUP", labels={"team": "rl"}, name="zebra", kind="monarch"
    )
    usual = make_job(project, **values, stop_reason="USER_CODE", labels={"team": "x"})
    make_copies(usual, JOBS)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET created_at = now() - interval '9 days' WHERE id = %s",
            [rare.pk])  # fmt: skip
    return project


def test_few_jobs_are_read_for_a_filter_that_few_match(project: Project) -> None:
    actor = make_actor(project, Role.MEMBER)

    def reads_few(wanted: JobFilter, most: int = 300) -> None:
        for _ in range(TIMES):
            rows = job_table(actor, project, wanted).rows
            matching_counts(actor, project, wanted)
        before = rows_read()
        job_table(actor, project, wanted)
        of_table = rows_read() - before
        matching_counts(actor, project, wanted)
        of_counts = rows_read() - before - of_table
        assert len(rows) <= 1
        assert max(of_table, of_counts) <= most, (of_table, of_counts)

    check_each(
        [
            JobFilter(labels=("team=rl",)),
            JobFilter(labels=("team=vision",)),
            JobFilter(reason="SETUP"),
            JobFilter(reason="OOM"),
            JobFilter(q="zebra"),
            JobFilter(name="zebra"),
            JobFilter(user="nobody"),
            JobFilter(queue="none"),
            JobFilter(backend="none"),
            JobFilter(gpu="B200"),
            JobFilter(kind="monarch"),
            JobFilter(until="8d"),
        ],
        reads_few,
    )


def test_a_text_without_a_trigram_is_searched_for_in_the_newest_jobs_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.readers.job_filter.SHORT_TEXT_LIMIT", 100)
    actor, wanted = make_actor(project, Role.MEMBER), JobFilter(q="zq")
    before = rows_read()
    assert job_table(actor, project, wanted).rows == []
    assert rows_read() - before <= 300
