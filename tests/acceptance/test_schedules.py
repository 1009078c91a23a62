"""A schedule on a real portal: its folder is uploaded once, and its job runs by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: every-minute
workdir: code
run: cat said.txt
"""
# The next minute begins within one; then its job runs.
IN_TIME_S = 100


def shown(portal: PortalProcess) -> dict[str, Any]:
    found = portal.mportal("schedule", "show", "minutely", "-o", "json")
    assert found.returncode == 0, found.stderr
    return dict(json.loads(found.stdout))


@pytest.mark.feature("P9.2")
def test_a_schedule_submits_its_job_when_its_time_has_come(portal, tmp_path: Path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "said.txt").write_text("it is time\n")
    (tmp_path / "job.yaml").write_text(JOB)
    made = portal.mportal(
        "schedule", "add", "minutely", str(tmp_path / "job.yaml"),
        "--cron", "* * * * *", "--zone", "America/New_York",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("minutely: Every minute, America/New_York\nminutely: next ")
    assert eventually(lambda: shown(portal)["runs"], timeout_s=IN_TIME_S), portal.logs()
    portal.mportal("schedule", "pause", "minutely")
    job_id = str(shown(portal)["last_job"])
    assert portal.mportal("wait", job_id).returncode == 0
    assert portal.mportal("logs", job_id).stdout == "it is time\n"
    assert "Submitted by schedule minutely" in portal.mportal("events", job_id).stdout
    assert "minutely" in portal.mportal("get", job_id).stdout
    assert portal.mportal("schedule", "rm", "minutely").returncode == 0
