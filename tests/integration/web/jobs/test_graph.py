"""The graph of a job on its page and in REST."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import Job, JobArray, JobDependency, Project
from jobs.permissions import Actor
from jobs.readers.job_graph import job_graph
from jobs.statuses import JobStatus, Role
from tests.each_case import check_each
from tests.factories import make_job, make_member
from tests.integration.web.conftest import browser_of
from tests.undone import undone

pytestmark = pytest.mark.feature("S2.6")


@pytest.fixture
def mia(project):
    return browser_of(make_member(project, Role.VIEWER, username="mia"))


def after(job: Job, *others: Job, **fields: Any) -> Job:
    """Let a job depend on others."""
    for other in others:
        job.dependencies.create(needs=other, needs_number=other.pk, needs_name=other.name, **fields)
    return job


def make_chain(project: Project, number: int) -> list[Job]:
    """Create jobs of which each depends on the one before."""
    jobs = [make_job(project, name=f"step-{place}") for place in range(number)]
    for first, then in itertools.pairwise(jobs):
        after(then, first)
    return jobs


def test_only_a_job_with_dependencies_has_the_tab_with_its_graph(mia, project):
    alone = make_job(project)
    first = make_job(project, name="prepare", status=JobStatus.SUCCEEDED)
    last = after(make_job(project, name="train"), first, ended_as=JobStatus.SUCCEEDED)
    assert ">Graph</a>" not in mia.get(f"/rl/jobs/{alone.pk}").content.decode()
    for job in (first, last):
        assert ">Graph</a>" in mia.get(f"/rl/jobs/{job.pk}").content.decode()
    table = mia.get("/rl/jobs").content.decode()
    assert table.count(">graph</a>") == 2
    assert all(f'href="/rl/jobs/{job.pk}/graph"' in table for job in (first, last))
    page = mia.get(f"/rl/jobs/{first.pk}/graph").content.decode()
    assert f'href="/rl/jobs/{last.pk}"' in page
    assert f'aria-label="train #{last.pk}: Queued, after prepare #{first.pk}"' in page
    assert f"train #{last.pk}: Queued" in mia.text(f"/rl/jobs/{first.pk}/graph/live")


def test_the_graph_has_all_connected_jobs_and_no_others(project, mia):
    first, middle, last = make_chain(project, 3)
    sibling = after(make_job(project), first, after="end", ended_as=JobStatus.FAILED)
    make_chain(project, 2)
    graph = job_graph(Actor(mia.user), "rl", middle.pk)
    assert {job.job_id for job in graph.jobs} == {first.pk, middle.pk, last.pk, sibling.pk}
    assert {(edge.needs, edge.job_id, edge.state) for edge in graph.edges} == {
        (first.pk, middle.pk, "open"),
        (middle.pk, last.pk, "open"),
        (first.pk, sibling.pk, "met"),
    }
    number = first.pk
    first.delete()
    graph = job_graph(Actor(mia.user), "rl", middle.pk)
    assert next((job.job_id, job.deleted) for job in graph.jobs) == (number, True)
    assert graph.is_whole


def test_a_large_graph_takes_as_many_queries_as_a_small_one_and_is_folded(
    mia, project, django_assert_max_num_queries
):
    jobs = make_chain(project, 60)
    done = Job.objects.filter(pk__in=[job.pk for job in jobs[:50]])
    done.update(status=JobStatus.SUCCEEDED, ended_at=timezone.now())
    array = JobArray.objects.create(project=project, name="sweep", size=30, submitted_by=mia.user)
    for index in range(30):
        after(make_job(project, array=array, array_index=index), jobs[-1])
    with django_assert_max_num_queries(14):
        text = mia.text(f"/rl/jobs/{jobs[-1].pk}/graph/live")
    assert "90 jobs: 40 queued, 50 succeeded" in text
    assert "Show each job" in text and f"sweep array {array.pk}: 30 queued" in text
    assert "Fold finished jobs" in mia.text(f"/rl/jobs/{jobs[-1].pk}/graph/live?whole=1")


def make_fan(project: Project, number: int) -> list[Job]:
    """Create jobs, and one that depends on all of them."""
    first = make_job(project)
    columns = {field.attname: getattr(first, field.attname) for field in Job._meta.concrete_fields}
    columns["id"] = None
    jobs = Job.objects.bulk_create((Job(**columns) for _ in range(number)), 500)
    JobDependency.objects.bulk_create(
        JobDependency(job=first, needs=job, needs_number=job.pk, needs_name=job.name)
        for job in jobs
    )
    return [first, *jobs]


def test_a_wide_or_a_long_graph_is_found_without_reading_all_dependencies_for_each_job(
    project, mia
):
    @undone()
    def reads_few(make: Callable[[Project, int], list[Job]]) -> None:
        jobs = make(project, 400)
        with connection.cursor() as cursor:
            # The statistics from which the database chooses how it reads.
            cursor.execute("ANALYZE jobs_jobdependency")
        before = dependencies_read()
        assert len(job_graph(Actor(mia.user), "rl", jobs[0].pk).jobs) == len(jobs)
        assert dependencies_read() - before < 20 * len(jobs)

    check_each([make_fan, make_chain], reads_few)


def dependencies_read() -> int:
    """Return the number of dependencies that the database read in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
            " WHERE relname = 'jobs_jobdependency'"
        )
        return int(cursor.fetchone()[0])
