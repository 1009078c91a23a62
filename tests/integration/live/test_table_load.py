"""The table of a sweep that runs, with many readers: how old they are, and what a change costs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import httpx
import pytest

from jobs.lifecycle import move
from jobs.models import Job, Project
from jobs.statuses import JobStatus
from monarch_client.rest.server_sent import read_events
from tests.factories import make_job, make_member, make_project
from tests.integration.live.conftest import next_of
from tests.integration.live.test_table_stream import cookies_of
from tests.web_process import WebProcess

pytestmark = [pytest.mark.slow, pytest.mark.feature("P7.1")]
# Three rounds of changes are all on the first page.
SWEEP, READERS, CHANGES, PAUSE_S = 1_000, 20, 15, 0.25
OLDEST_S = 2.0


class Load(NamedTuple):
    """The greatest age of a row at any reader, and the processor time of one change."""

    oldest_s: float
    cpu_s: float


@pytest.fixture
def sweep(transactional_db: None) -> Project:
    """Create a project with a sweep whose jobs are about to run."""
    project = make_project("rl")
    first = make_job(project, status=JobStatus.SETTING_UP, name="lr")
    fields = {field.attname: getattr(first, field.attname) for field in Job._meta.concrete_fields}
    del fields["id"]
    Job.objects.bulk_create(Job(**fields) for _ in range(SWEEP - 1))
    return project


@pytest.fixture
def process(transactional_db: None, redis_client: object, tmp_path: Path) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path)
    process.start()
    yield process
    process.close()


def arrivals(url: str, cookies: dict[str, str], on_open: Callable[[], object]) -> dict[str, float]:
    """Read the stream of a table; return when each row was first shown as running."""
    found: dict[str, float] = {}
    with httpx.stream("GET", url, cookies=cookies, timeout=30) as response:
        events = read_events(response.iter_bytes())
        next_of(events, "changed")
        on_open()
        while len(found) < CHANGES:
            content: dict[str, Any] = json.loads(next_of(events, "rows").data)
            now = time.monotonic()
            for row in content["rows"].split("<tr id=")[1:]:
                if "Running" in row:
                    found.setdefault(row.split('"')[1], now)
    return found


def cpu_of(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loaded(process: WebProcess, project: Project, readers: int) -> Load:
    """Start jobs of the sweep, four a second, while that many readers watch."""
    jobs = list(Job.objects.filter(status=JobStatus.SETTING_UP).order_by("-pk")[:CHANGES])
    cookies = [cookies_of(make_member(project)) for _ in range(readers)]
    opened: list[None] = []
    url = f"{process.url}/{project.slug}/jobs/stream"
    moved: dict[str, float] = {}
    with ThreadPoolExecutor(readers) as pool:
        read = [pool.submit(arrivals, url, each, lambda: opened.append(None)) for each in cookies]
        while len(opened) < readers:
            assert not any(each.done() for each in read)
            time.sleep(0.05)
        before = cpu_of(process.pid)
        for job in jobs:
            moved[f"job-{job.pk}"] = time.monotonic()
            move(job, JobStatus.RUNNING)
            Event().wait(PAUSE_S)
        shown = [each.result(30) for each in read]
    cpu_s = cpu_of(process.pid) - before
    ages = [at[row] - moved[row] for at in shown for row in moved]
    return Load(max(ages), cpu_s / CHANGES)


def test_twenty_readers_of_a_sweep_are_current_and_cost_little_more_than_one(sweep, process):
    loaded(process, sweep, 1)
    one, many = loaded(process, sweep, 1), loaded(process, sweep, READERS)
    assert many.oldest_s < OLDEST_S, (one, many)
    assert many.cpu_s < 3 * one.cpu_s, (one, many)
