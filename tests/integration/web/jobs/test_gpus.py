"""GPUs and their use in the job table, on the job page and in REST."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job
from tests.integration.api.conftest import caller_for
from tests.sample_frames import tell_of_hosts, tell_of_use

GPUS = {"num_nodes": 4, "gpu_type": "H100", "gpu_count": 32}


@pytest.fixture
def job(project) -> Job:
    return make_job(project, name="ppo", status=JobStatus.RUNNING, **GPUS)


def test_rows_and_facts_show_the_gpus_and_their_use(viewer, project, job):
    make_job(project, name="plain", num_nodes=2)
    assert "GPU use" not in viewer.text("/rl/jobs")
    tell_of_use(make_attempt(job), [80, 90, 87.4])
    table, page = viewer.text("/rl/jobs"), viewer.text(f"/rl/jobs/{job.pk}")
    for text in (table, page):
        assert "4 x H100:8" in text and "87 %" in text
        assert "idle" not in text
    assert "mean 86 %, lowest host 77 %" in page
    assert viewer.get("/rl/jobs").content.count(b'class="spark"') == 1


def test_idle_gpus_are_pointed_out_while_the_job_runs(viewer, job):
    tell_of_use(make_attempt(job), [1, 0], idle_min=40)
    assert "0 % idle 40 min" in viewer.text("/rl/jobs").replace("  ", " ")
    assert "idle 40 min" in viewer.text(f"/rl/jobs/{job.pk}")
    job.gpu_uses.update(busy_at=job.gpu_uses.get().at)
    assert "idle" not in viewer.text("/rl/jobs")
    job.gpu_uses.update(busy_at=job.created_at)
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=job.created_at)
    assert "idle" not in viewer.text("/rl/jobs")


def test_the_table_is_filtered_by_the_type_of_gpu(viewer, project, job):
    other = make_job(project, gpu_type="A100-80GB", gpu_count=1)
    make_job(project)
    html = viewer.get("/rl/jobs", {"gpu": "h100"}).content.decode()
    assert re.findall(r'<tr id="job-(\d+)"', html) == [str(job.pk)]
    choices = re.search(r'<select[^>]*name="gpu".*?</select>', html, re.DOTALL)
    assert choices
    assert re.findall(r"([A-Z0-9-]+)\s*</option>", choices[0]) == ["A100-80GB", "H100"]
    rows = caller_for(viewer.user).get("/projects/rl/jobs", {"gpu": "a100-80gb"}).json()["results"]
    assert [(row["id"], row["gpu_type"], row["gpu_count"]) for row in rows] == [
        (other.pk, "A100-80GB", 1)
    ]


def test_the_use_of_all_hosts_over_time_is_a_chart_and_in_rest(viewer, job):
    attempt = make_attempt(job)
    tell_of_hosts(attempt, 2, gpus=1)
    tell_of_use(attempt, [50, 70])
    assert "All hosts" in viewer.text(f"/rl/jobs/{job.pk}/nodes?show=metrics")
    use = caller_for(viewer.user).get(f"/projects/rl/jobs/{job.pk}/metrics").json()["gpu_use"]
    assert (use["mean"], use["lowest"], len(use["t"])) == ([50, 70], [41, 61], 2)


def test_a_table_of_gpu_jobs_takes_as_many_queries_as_one_job(
    viewer, project, job, django_assert_num_queries
):
    tell_of_use(make_attempt(job), [50])
    viewer.get("/rl/jobs")
    with CaptureQueriesContext(connection) as few:
        viewer.get("/rl/jobs")
    for _ in range(5):
        more = make_job(project, status=JobStatus.RUNNING, **GPUS)
        tell_of_use(make_attempt(more), [50])
    with django_assert_num_queries(len(few)):
        viewer.get("/rl/jobs")
