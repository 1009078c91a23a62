"""mportal get: the workers of a job, of many only those that need a look."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from monarch_client.cli.jobs import MOST_WORKERS
from tests.unit.rest.fake_portal import attempt_json, job_json, ok, page

JOB = "GET /projects/rl/jobs/42"


def worker_json(**fields):
    return {
        "rank": 0, "mesh": "trainers", "address": "", "status": "EXITED", "python": "3.11",
        "pid": 7, "exit_code": 0, "detail": "", "ready_at": None, "ended_at": None, **fields,
    }  # fmt: skip


def test_get_of_a_thousand_hosts_shows_those_that_are_not_well_and_counts_all(mportal, portal):
    workers = [worker_json(rank=rank) for rank in range(1000)]
    portal.on(JOB, ok(job_json()))
    portal.on(f"{JOB}/attempts", page([attempt_json(workers=workers)]))
    text = mportal("get", "42").stdout
    assert text.count("trainers") == MOST_WORKERS
    assert "and 950 more; 1000 in all: 1000 EXITED. --all lists them." in text
    assert portal.seen(f"{JOB}/attempts")[0].url.params["workers"] == "newest"
    workers[700] = worker_json(rank=700, status="LOST", exit_code=None)
    workers[900] = worker_json(rank=900, exit_code=3)
    portal.on(f"{JOB}/attempts", page([attempt_json(workers=workers)]))
    rows = [line for line in mportal("get", "42").stdout.splitlines() if "trainers" in line]
    assert [row.split()[0] for row in rows] == ["700", "900"]
    assert mportal("get", "42", "--all").stdout.count("trainers") == 1000
    assert portal.seen(f"{JOB}/attempts")[-1].url.params["workers"] == "all"


def test_get_shows_when_each_rank_wrote_last_and_marks_the_silent_one(mportal, portal):
    ago = [datetime.now(timezone.utc) - timedelta(seconds=seconds) for seconds in (5, 600)]
    workers = [
        worker_json(rank=rank, last_line_at=at.isoformat(), is_silent=rank == 1)
        for rank, at in enumerate(ago)
    ]
    portal.on(JOB, ok(job_json()))
    portal.on(f"{JOB}/attempts", page([attempt_json(workers=workers)]))
    rows = [line for line in mportal("get", "42").stdout.splitlines() if "trainers" in line]
    assert " s ago" in rows[0]
    assert "SILENT" not in rows[0]
    assert "10 min ago SILENT" in rows[1]


def test_get_says_which_rank_failed_first_where_the_others_were_ended_for_it(mportal, portal):
    workers = [worker_json(rank=0, exit_code=143, ended_after=1), worker_json(rank=1, exit_code=1)]
    portal.on(JOB, ok(job_json()))
    portal.on(f"{JOB}/attempts", page([attempt_json(workers=workers)]))
    rows = [line for line in mportal("get", "42").stdout.splitlines() if "trainers" in line]
    assert "ended by the portal after node 1 failed" in rows[0]
    assert "ended by" not in rows[1]
