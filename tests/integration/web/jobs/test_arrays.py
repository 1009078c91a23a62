"""The page of an array, and the links to it."""

from __future__ import annotations

from copy import copy

import pytest

from jobs.actions.jobs.submit import submit_job, submit_jobs
from jobs.models import Job, JobArray
from jobs.permissions import Actor
from jobs.statuses import Role
from tests.factories import make_job, make_member
from tests.integration.web.conftest import browser_of, text_of

pytestmark = pytest.mark.feature("S2.6")
SWEEP = "name: ppo\nrun: 'true'\nportal: {array: {lr: [1e-4, 3e-4]}, max_parallel: 1}\n"
DAG = "name: b\nrun: 'true'\nportal: {depends_on: [a]}\n---\nname: a\nrun: 'true'\n"


@pytest.fixture
def mia(project):
    return browser_of(make_member(project, Role.MEMBER, username="mia"))


def submit(browser, source: str):
    return browser.post("/rl/jobs/new", {"source": source})


def test_a_submitted_array_leads_to_its_page_and_its_jobs_lead_back(mia):
    answer = submit(mia, SWEEP)
    array = JobArray.objects.get()
    assert answer["Location"] == f"/rl/arrays/{array.pk}"
    page = mia.text(answer["Location"])
    assert "ppo array" in page and "lr=1e-4" in page and "1 at once" in page
    assert f"Array {array.pk} runs at most 1 job at once." in page
    job = array.jobs.first()
    assert f'href="/rl/arrays/{array.pk}"' in mia.get(f"/rl/jobs/{job.pk}").content.decode()
    assert f'href="/rl/arrays/{array.pk}"' in mia.get("/rl/jobs").content.decode()


def test_the_buttons_cancel_all_and_run_again_what_did_not_succeed(mia):
    submit(mia, SWEEP)
    array = JobArray.objects.get()
    place = f"/rl/arrays/{array.pk}"
    assert "Rerun failed" not in mia.text(place)
    assert mia.post(f"{place}/cancel")["Location"] == place
    assert set(array.jobs.values_list("status", flat=True)) == {"CANCELLED"}
    page = mia.text(place)
    assert "Cancel all" not in page and "Rerun failed" in page
    mia.post(f"{place}/rerun-failed")
    assert array.jobs.count() == 4
    again = mia.post(f"{place}/rerun-failed", follow=True)
    assert "has failed or was cancelled" in text_of(again)


def test_documents_of_one_text_lead_to_the_table_and_a_job_names_what_it_needs(mia, project):
    assert submit(mia, DAG)["Location"] == "/rl/jobs"
    b, a = (Job.objects.get(name=name) for name in "ba")
    page = mia.text(f"/rl/jobs/{b.pk}")
    assert f"Waits for job {a.pk} (a) to succeed." in page
    assert f"After a #{a.pk}" in page


def test_errors_of_the_second_document_have_its_lines(mia):
    page = text_of(submit(mia, DAG.replace("name: a", "nam: a")))
    assert "nam" in page and not Job.objects.exists()


def test_the_pages_ask_as_often_for_a_large_array_as_for_a_small_one(
    mia, project, django_assert_max_num_queries
):
    actor = Actor(mia.user)
    values = {"seed": list(range(60))}
    source = {"name": "many", "run": "true", "portal": {"array": values}}
    job = submit_job(actor, project, source)
    after = {"name": "after", "run": "true", "portal": {"depends_on": ["many"]}}
    [last] = submit_jobs(actor, project, [after])
    with django_assert_max_num_queries(20):
        mia.get(f"/rl/arrays/{job.array_id}")
    assert "and 55 more" in mia.text(f"/rl/jobs/{last.pk}")


def test_deleted_jobs_are_shown_beside_the_others(mia):
    submit(mia, SWEEP)
    array = JobArray.objects.get()
    Job.objects.filter(pk=array.jobs.last().pk).delete()
    assert "Deleted 1" in mia.text(f"/rl/arrays/{array.pk}")


def make_large_array(project, user, size: int) -> JobArray:
    """Create an array of queued jobs without submitting them."""
    array = JobArray.objects.create(
        project=project, name="wide", size=size, values=[["seed", []]], submitted_by=user
    )
    first = make_job(project, array=array, array_index=0, submitted_by=user)
    jobs = []
    for index in range(1, size):
        first.pk, first.array_index = None, index
        jobs.append(copy(first))
    Job.objects.bulk_create(jobs)
    return array


def test_the_page_has_a_letter_for_each_job_and_its_retries(mia, project):
    array = make_large_array(project, mia.user, 5)
    jobs = list(array.jobs.order_by("array_index"))
    Job.objects.filter(pk=jobs[1].pk).update(status="RUNNING", failure_count=2, recovery_count=1)
    Job.objects.filter(pk=jobs[2].pk).delete()
    page = mia.get(f"/rl/arrays/{array.pk}").content.decode()
    assert 'data-letters="QR-QQ"' in page
    assert 'data-retries="{&quot;1&quot;: 3}"' in page
    assert mia.get(f"/rl/arrays/{array.pk}/jobs/1")["Location"] == f"/rl/jobs/{jobs[1].pk}"
    assert mia.get(f"/rl/arrays/{array.pk}/jobs/2").status_code == 404


def test_the_rows_of_a_large_array_are_filtered_and_shown_in_pages(
    mia, project, django_assert_max_num_queries
):
    array = make_large_array(project, mia.user, 250)
    array.jobs.filter(array_index__in=[7, 249]).update(status="RUNNING")
    rows = r'<tr id="job-'
    with django_assert_max_num_queries(20):
        page = mia.get(f"/rl/arrays/{array.pk}").content.decode()
    assert page.count(rows) == 100 and "Page 1 of 3" in page
    assert mia.get(f"/rl/arrays/{array.pk}?page=9").content.decode().count(rows) == 50
    running = mia.get(f"/rl/arrays/{array.pk}/live?status=RUNNING").content.decode()
    assert running.count(rows) == 2 and "Page" not in running
