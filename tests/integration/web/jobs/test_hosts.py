"""/{project}/jobs/{id}/nodes, metrics: the use of each host, and its history."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from jobs.ground import clock
from jobs.models import Attempt, HostMetrics, Job, Worker
from jobs.statuses import JobStatus
from jobs.web.jobs.hosts_tab import MOST_TILES
from tests.factories import make_attempt, make_job
from tests.integration.web.conftest import SOURCE
from tests.sample_frames import tell_of_hosts

LARGEST_PAGE = 200_000


@pytest.fixture
def attempt(project, member) -> Attempt:
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        submitted_by=member.user,
        num_nodes=2,
        spec_source=SOURCE,
    )
    return make_attempt(job)


def test_each_host_has_its_numbers_beside_its_bars_and_the_first_its_charts(viewer, attempt):
    tell_of_hosts(attempt, 2, gpus=2)
    page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=metrics")
    assert "2 hosts now: mean GPU" in page
    for words in ("Node 0", "Node 1", "8 CPUs", "of 32 GiB", "GPU 1", "413 W", "61 °C"):
        assert words in page
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=metrics").content.decode()
    titles = re.findall(r"<figcaption>\s*<b>([^<]+)", html)
    assert titles == ["Processor", "Memory", "GPU use", "GPU memory", "Network", "Disk"]
    # Readers who cannot see the chart get its content as text.
    assert re.search(
        r'aria-label="GPU use. GPU 0: last \d+ %, mean \d+ %, highest \d+ %. GPU 1', html
    )
    assert re.search(r"<title>\d+ min: GPU 0 \d+ %, GPU 1 \d+ %</title>", html)


def test_the_part_that_lives_is_the_part_of_the_first_paint(viewer, attempt):
    tell_of_hosts(attempt, 2)
    whole = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=metrics&rank=1").content.decode()
    part = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=metrics&rank=1").content.decode()
    assert "History of node 1" in part
    shown = re.sub(r"\s+", "", whole)
    assert re.sub(r"\s+", "", re.search(r"<figure.*</figure>", part, re.DOTALL)[0]) in shown


def test_a_thousand_hosts_are_a_grid_that_stays_small(viewer, attempt):
    tell_of_hosts(attempt, 1000, gpus=8, points=2)
    HostMetrics.objects.filter(rank=7).update(at=clock.now() - timedelta(minutes=5))
    response = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=metrics&rank=999")
    html = response.content.decode()
    assert len(response.content) < LARGEST_PAGE
    assert len(re.findall(r"<a[^>]*data-host[^>]*title=", html)) == 1000
    assert 'title="GPU' in html
    assert "1000 hosts" in html
    assert "1 silent" in html
    assert re.search(r'class="hs"[^>]*title="silent; last GPU', html)
    assert "History of node 999" in html


def test_the_grid_is_colored_by_what_one_chooses(viewer, attempt):
    tell_of_hosts(attempt, MOST_TILES + 1, points=2)
    path = f"/rl/jobs/{attempt.job_id}/nodes/live?show=metrics"
    # Without GPUs they cannot be chosen.
    assert "by=gpu" not in viewer.get(f"{path}&by=gpu").content.decode()
    html = viewer.get(f"{path}&by=memory").content.decode()
    assert re.search(r"by=memory[^>]*aria-current", html)
    heats = set(re.findall(r'<a class="h(\w)"', html))
    assert heats == {"4", "5"}


def test_after_the_end_it_is_what_was_reported_last(viewer, attempt):
    tell_of_hosts(attempt, 1, gpus=1)
    Attempt.objects.update(ended_at=clock.now())
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=clock.now())
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=metrics").content.decode()
    assert "as last reported" in html
    assert "data-final" in html
    assert "<polyline" in html


def test_before_anything_was_reported_the_page_says_so(viewer, attempt):
    assert "No hosts yet" in viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=metrics")
    Worker.objects.create(attempt=attempt, rank=0)
    page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=metrics")
    assert "No report yet." in page
    assert "No report from this host yet." in page


@pytest.mark.parametrize(
    "query", ["attempt=7", "attempt=x", "rank=-1", "rank=1e3", f"rank={'9' * 30}"]
)
def test_what_is_not_there_is_not_found(viewer, attempt, query):
    assert (
        viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=metrics&{query}").status_code == 404
    )
