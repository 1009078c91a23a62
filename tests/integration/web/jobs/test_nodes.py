"""/{project}/jobs/{id}/nodes: the grid of nodes, and what a plain job does not show."""

from __future__ import annotations

import re

from jobs.models import Attempt, Worker
from jobs.statuses import JobKind, JobStatus, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.integration.web.conftest import SOURCE
from tests.sample_frames import tell_of_hosts


def attempt_of(project, kind: JobKind) -> Attempt:
    job = make_job(project, status=JobStatus.RUNNING, kind=kind, num_nodes=2, spec_source=SOURCE)
    attempt = make_attempt(job)
    for rank in range(2):
        Worker.objects.create(attempt=attempt, rank=rank, status=WorkerStatus.RUNNING, pid=70)
    return attempt


def test_a_row_has_the_figures_of_the_node_and_leads_to_its_views(viewer, project):
    attempt = attempt_of(project, JobKind.MONARCH)
    tell_of_hosts(attempt, 2, gpus=1)
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes").content.decode()
    row = re.search(r'<tr id="worker-1">.*?</tr>', html, re.DOTALL)
    assert row is not None
    assert len(re.findall(r'<span class="num">\d+ %</span>', row[0])) == 3
    for show in ("metrics", "mesh", "stacks"):
        assert f'href="?show={show}&amp;rank=1"' in row[0]


def test_a_plain_job_shows_nothing_of_monarch(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN)
    for show in ("grid", "mesh"):
        page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show={show}")
        assert "Mesh" not in page
        assert "Workers listen" not in page
    monarch = attempt_of(project, JobKind.MONARCH)
    page = viewer.text(f"/rl/jobs/{monarch.job_id}/nodes")
    assert "Mesh" in page
    assert "Workers listen" in page
