"""mportal why: one sentence first, then place, moment, and who has what is missing."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.unit.rest.fake_portal import MOMENT, ok

WHY = "GET /projects/rl/jobs/42/why"
pytestmark = pytest.mark.feature("P5.5")


def named(**fields: Any) -> dict[str, Any]:
    hidden = {"job_id": None, "project": "", "name": "", "owner": "", "status": "", "has": ""}
    return {**hidden, **fields}


def waiting(**fields: Any) -> dict[str, Any]:
    return {
        "job_id": 42,
        "status": "QUEUED",
        "code": "no_room",
        "reason": "CAPACITY",
        "sentence": "Needs 2 nodes; 1 of 4 is free on local.",
        "since": MOMENT,
        "next_try_at": None,
        "position": 3,
        "of": 7,
        "ahead": [],
        "limit": None,
        "holders": [],
        "expected_at": None,
        "basis": "",
        "no_estimate": "",
        **fields,
    }


def test_the_sentence_comes_first_then_the_place(portal, mportal):
    portal.on(WHY, ok(waiting()))
    lines = mportal("why", "42").stdout.splitlines()
    assert lines[0] == "Needs 2 nodes; 1 of 4 is free on local."
    assert lines[1].startswith("It waits for ")
    assert lines[2] == "Position 3 of 7 in the queue."


def test_who_has_it_is_listed_and_jobs_of_others_have_no_name(portal, mportal):
    has = named(job_id=7, project="rl", name="big", owner="ana", status="RUNNING", has="3 nodes")
    portal.on(WHY, ok(waiting(holders=[has, named(has="1 node")], ahead=[named()])))
    rows = [" ".join(row.split()) for row in mportal("why", "42").stdout.splitlines()[3:]]
    assert rows == [
        "",
        "Who has it:",
        "JOB NAME PROJECT OWNER STATUS HAS",
        "7 big rl ana RUNNING 3 nodes",
        "- (of another project) 1 node",
        "",
        "Ahead of it:",
        "JOB NAME PROJECT OWNER STATUS",
        "- (of another project)",
    ]


@pytest.mark.parametrize(
    ("basis", "said"), [("bounds", "at the latest"), ("past_runs", "probably")]
)
def test_an_expected_moment_is_shown_with_its_certainty(portal, mportal, basis, said):
    at = datetime.now(timezone.utc) + timedelta(hours=2, minutes=1)
    portal.on(WHY, ok(waiting(expected_at=at.isoformat(), basis=basis)))
    assert f"It starts in 2 h, {said}" in mportal("why", "42").stdout


def test_where_there_is_no_estimate_it_says_why(portal, mportal):
    said = "No estimate: job 12 has no max_duration, and no such job has succeeded lately."
    portal.on(WHY, ok(waiting(no_estimate=said)))
    assert mportal("why", "42").stdout.splitlines()[3] == said


def test_json_has_all_that_the_portal_returns(portal, mportal):
    portal.on(WHY, ok(waiting()))
    reported = json.loads(mportal("why", "42", "-o", "json").stdout)
    assert (reported["code"], reported["position"], reported["of"]) == ("no_room", 3, 7)
