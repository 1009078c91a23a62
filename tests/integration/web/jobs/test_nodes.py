"""/{project}/jobs/{id}/nodes: the grid of nodes, and what a plain job does not show."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from jobs.ground import clock
from jobs.models import Attempt, LogHead, Worker
from jobs.statuses import JobKind, JobStatus, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.integration.web.conftest import SOURCE
from tests.sample_frames import tell_of_hosts


def attempt_of(project, kind: JobKind, ranks: int = 2) -> Attempt:
    job = make_job(
        project, status=JobStatus.RUNNING, kind=kind, num_nodes=ranks, spec_source=SOURCE
    )
    attempt = make_attempt(job)
    for rank in range(ranks):
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


def wrote(attempt: Attempt, **seconds_ago: int) -> datetime:
    now = clock.now()
    Attempt.objects.filter(pk=attempt.pk).update(run_started_at=now - timedelta(hours=1))
    last = {rank[1:]: int(now.timestamp()) - ago_s for rank, ago_s in seconds_ago.items()}
    LogHead.objects.update_or_create(attempt=attempt, defaults={"last_lines": last})
    return now


def rows_of(viewer, attempt: Attempt) -> dict[int, str]:
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes").content.decode()
    found = re.findall(r'<tr id="worker-(\d+)">(.*?)</tr>', html, re.DOTALL)
    return {int(rank): " ".join(re.sub("<.*?>", " ", row).split()) for rank, row in found}


def test_the_rank_that_stopped_writing_is_marked_and_comes_first(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN, ranks=4)
    wrote(attempt, r0=5, r1=6, r2=150, r3=7)
    rows = rows_of(viewer, attempt)
    assert list(rows) == [2, 0, 1, 3]
    assert "2 min ago Silent" in rows[2]
    assert "Silent" not in rows[0] + rows[1] + rows[3]


def header_of(viewer, attempt: Attempt) -> str:
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/live").content.decode()
    head = re.search(r'<header id="job-head".*?</header>', html, re.DOTALL)
    assert head is not None
    return " ".join(re.sub("<.*?>", " ", head[0]).split())


def test_the_header_names_the_rank_that_hangs_also_of_two(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN)
    wrote(attempt, r0=1, r1=185)
    assert "Node 1 silent for 3 min" in header_of(viewer, attempt)
    assert "Silent" in rows_of(viewer, attempt)[1]


def test_a_rank_that_writes_nothing_by_intention_is_not_named(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN)
    wrote(attempt, r0=1)
    assert "silent" not in header_of(viewer, attempt)


def test_a_rank_that_never_wrote_is_silent_since_the_program_began(viewer, project):
    attempt = attempt_of(project, JobKind.MONARCH, ranks=3)
    wrote(attempt, r0=5, r1=6)
    assert "– Silent" in rows_of(viewer, attempt)[2]


def test_after_the_end_a_row_says_how_long_before_it_the_rank_wrote_last(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN, ranks=3)
    Attempt.objects.update(ended_at=wrote(attempt, r0=5, r1=6, r2=190))
    rows = rows_of(viewer, attempt)
    assert "3 m 10 s before the end" in rows[2]
    assert "Silent" not in rows[2]


def test_a_plain_job_shows_nothing_of_monarch(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN)
    for show in ("grid", "mesh"):
        page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show={show}")
        assert "Mesh" not in page
        assert "Starting workers" not in page
    monarch = attempt_of(project, JobKind.MONARCH)
    page = viewer.text(f"/rl/jobs/{monarch.job_id}/nodes")
    assert "Mesh" in page
    assert "Starting workers" in page


def test_the_rank_that_failed_comes_first_and_those_ended_for_it_say_so(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN, ranks=4)
    now = clock.now()
    for rank, code in {0: 143, 1: 1, 2: 143, 3: 1}.items():
        ended_at = now - timedelta(seconds=rank)
        Worker.objects.filter(attempt=attempt, rank=rank).update(
            exit_code=code, status=WorkerStatus.EXITED, ended_at=ended_at
        )
    rows = rows_of(viewer, attempt)
    assert list(rows) == [3, 1, 0, 2]
    for rank in (3, 1):
        assert "Failed" in rows[rank]
        assert "Ended by" not in rows[rank]
    for rank in (0, 2):
        assert "Exited" in rows[rank]
        assert "Ended by the portal after node 3 failed" in rows[rank]


def test_of_a_canceled_job_no_rank_has_failed(viewer, project):
    attempt = attempt_of(project, JobKind.PLAIN)
    Worker.objects.update(exit_code=143, status=WorkerStatus.EXITED)
    rows = rows_of(viewer, attempt)
    assert "Failed" not in rows[0]
    assert "Ended by" not in rows[0]
