"""mportal overview."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest

from monarch_client.wire import overview as wire
from tests.unit.rest.fake_portal import ok

NOW = datetime.now(UTC)
SPENDING = wire.Spending(
    today_usd=Decimal(12),
    month_usd=Decimal(340),
    forecast_usd=Decimal("512.50"),
    budget_usd=Decimal(500),
    usd_per_hour=Decimal("79.60"),
)
OVERVIEW = wire.Overview(
    project="rl",
    running=9,
    waiting=4,
    failed=3,
    busy_jobs=[
        wire.BusyJob(
            id=42,
            project="rl",
            name="ppo",
            status="RUNNING",
            status_label="Running",
            num_nodes=8,
            gpu_type="H100",
            gpu_count=64,
            gpu_use=None,
            submitted_by="ada",
            started_at=NOW,
        )
    ],
    waiting_jobs=[
        wire.WaitingJob(
            id=43,
            project="rl",
            name="sweep",
            num_nodes=2,
            gpu_type="",
            gpu_count=0,
            wait_reason="CAPACITY",
            message="Needs 2 nodes.",
            since=NOW,
            expected_at=NOW + timedelta(hours=20),
            next_try_at=None,
        ),
        wire.WaitingJob(
            id=44,
            project="rl",
            name="full",
            num_nodes=8,
            gpu_type="",
            gpu_count=0,
            wait_reason="BACKOFF",
            message="No free machines.",
            since=NOW,
            expected_at=None,
            next_try_at=NOW + timedelta(hours=7.2),
        ),
    ],
    waiting_for=[wire.WaitingFor(reason="CAPACITY", label="No free capacity", jobs=4)],
    failures=[
        wire.FailureCause(
            cause="Out of memory",
            stop_reason="OOM",
            is_diagnosis=False,
            jobs=3,
            last_job=40,
            last_name="eval",
            last_project="rl",
            last_at=NOW,
        )
    ],
    gpus=[
        wire.GpusOfType(
            gpu="H100",
            held=64,
            idle=8,
            use=71.2,
            pools=[wire.PoolGpus(name="big", used=64, total=96)],
            fleet=[],
        )
    ],
    idle=[
        wire.IdleMachines(
            project="rl",
            cluster="mp-warm",
            job=39,
            job_name="tokenize",
            is_busy=False,
            num_nodes=1,
            gpu_type="H100",
            gpu_count=8,
            usd_per_hour=Decimal("19.90"),
            idle_since=NOW - timedelta(hours=5),
            ends_at=NOW + timedelta(hours=5),
        )
    ],
    idle_usd_per_hour=Decimal("19.90"),
    spending=SPENDING,
    next_runs=[wire.NextRun(project="rl", schedule="nightly", at=NOW + timedelta(hours=5.2))],
    changes=wire.Changes(since=NOW, counts={"FAILED": 3}, newest=[]),
    projects=[
        wire.ProjectNow(project="rl", running=9, waiting=4, failed=3, spending=SPENDING),
    ],
)


@pytest.fixture
def body() -> object:
    return json.loads(msgspec.json.encode(OVERVIEW))


@pytest.mark.feature("P7.3")
def test_overview_shows_jobs_gpus_idle_machines_and_costs(mportal, portal, body):
    portal.on("GET /projects/rl/overview", ok(body))
    text = mportal("overview").stdout
    for words in (
        "9 running, 4 waiting, 3 failed in 24 h",
        "$12.00 today, $340.00 this month, $512.50 of $500.00 expected; $79.60 per hour now",
        "8 x H100:8",
        "in 20 h",
        "Needs 2 nodes.",
        "tries again in 7 h",
        "Out of memory",
        "64, 8 idle",
        "71 %",
        "big 64 of 96 used",
        "Idle machines, $19.90 per hour",
        "cluster 5 h",
        "in 5 h",
        "JOBS  CAUSE          LAST\n3     Out of memory  #40 eval",
        "nightly",
    ):
        assert words in text, words


def test_overview_of_all_projects_and_for_programs(mportal, portal, body):
    portal.on("GET /overview", ok(body))
    assert json.loads(mportal("overview", "-a", "-o", "json").stdout)["failed"] == 3
    assert mportal("overview", "--all", "-q").stdout == "rl\n"
