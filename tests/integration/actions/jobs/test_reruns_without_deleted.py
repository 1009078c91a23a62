"""A rerun whose dependency was deleted is refused, or leaves that dependency out."""

from __future__ import annotations

import pytest
import yaml

from jobs.actions.jobs.arrays import rerun_failed
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import submit_job
from jobs.errors import InvalidSpecError
from jobs.models import Job
from jobs.readers.job_array import misses_dependencies
from jobs.statuses import JobStatus, Role
from tests.factories import make_actor, make_project
from tests.integration.actions.jobs.test_arrays import REPORT, end, members, needed_by, sweep

pytestmark = pytest.mark.feature("S2.6")


@pytest.fixture
def project(db):
    return make_project("rl")


@pytest.fixture
def member(project):
    return make_actor(project, Role.MEMBER)


def test_a_rerun_whose_needed_job_was_deleted_says_the_way_out(project, member):
    first = submit_job(member, project, {**REPORT, "name": "prepare"})
    last = submit_job(member, project, {**REPORT, "portal": {"depends_on": ["prepare"]}})
    end(first, JobStatus.SUCCEEDED)
    Job.objects.filter(pk=first.pk).delete()
    with pytest.raises(InvalidSpecError) as caught:
        rerun_job(member, last)
    [error] = caught.value.data["errors"]
    assert error["message"] == (
        "portal.depends_on[0]: Project rl has no job 'prepare'. If it was deleted, rerun without "
        "it: `mportal rerun --drop-deleted`, `drop_deleted` in REST, or the button on the page."
    )


def test_a_rerun_may_leave_out_needed_jobs_that_were_deleted_and_no_others(project, member):
    gone = submit_job(member, project, {**REPORT, "name": "prepare"})
    stays = submit_job(member, project, {**REPORT, "name": "warm"})
    portal = {"depends_on": ["prepare", {"job": "warm", "after": "end"}]}
    last = submit_job(member, project, {**REPORT, "portal": portal})
    Job.objects.filter(pk=gone.pk).delete()
    again = rerun_job(member, last, drop_deleted=True)
    assert needed_by(again) == [(stays.pk, "")]
    assert yaml.safe_load(again.spec_source)["portal"] == again.spec["portal"]
    # What it was without is no riddle for the next one.
    assert needed_by(rerun_job(member, again)) == [(stays.pk, "")]


def test_a_rerun_that_drops_nothing_keeps_its_text(project, member):
    text = "name: report\nrun: echo   # as it was written\n"
    job = submit_job(member, project, text)
    assert rerun_job(member, job, drop_deleted=True).spec_source == text


def test_rerun_failed_may_leave_out_needed_jobs_that_were_deleted(project, member):
    first = submit_job(member, project, {**REPORT, "name": "prepare"})
    jobs = members(submit_job(member, project, sweep(depends_on=["prepare"])))
    for job in jobs:
        end(job, JobStatus.FAILED)
    assert not misses_dependencies(jobs[0].array_id)
    Job.objects.filter(pk=first.pk).delete()
    assert misses_dependencies(jobs[0].array_id)
    with pytest.raises(InvalidSpecError):
        rerun_failed(member, jobs[0].array)
    again = rerun_failed(member, jobs[0].array, drop_deleted=True)
    assert [needed_by(job) for job in again] == [[]] * len(jobs)
    assert {yaml.safe_load(job.spec_source)["name"] for job in again} == {job.name for job in jobs}
