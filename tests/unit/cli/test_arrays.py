"""mportal array: its requests and its output."""

from __future__ import annotations

import json

import pytest

from tests.unit.rest.fake_portal import array_json, ok, problem

ARRAY = "/projects/rl/arrays/7"


def test_get_shows_counts_and_each_job_with_its_values(mportal, portal):
    portal.on(f"GET {ARRAY}", ok(array_json()))
    result = mportal("array", "get", "7")
    assert result.exit_code == 0
    assert "Array 7 (ppo), 2 jobs, 1 at once: 2 QUEUED" in result.stdout
    assert "lr=1e-4" in result.stdout and "lr=3e-4" in result.stdout
    assert json.loads(mportal("array", "get", "7", "-o", "json").stdout)["size"] == 2


def test_get_shows_the_jobs_of_all_pages(mportal, portal):
    first, second = array_json()["jobs"]
    pages = [array_json(jobs=[first], next="1"), array_json(jobs=[second], previous="0")]
    portal.on(f"GET {ARRAY}", *map(ok, pages))
    shown = mportal("array", "get", "7").stdout
    assert "lr=1e-4" in shown and "lr=3e-4" in shown
    cursors = [request.url.params.get("cursor") for request in portal.seen(f"GET {ARRAY}")]
    assert cursors == [None, "1"]


@pytest.mark.parametrize("verb", ["cancel", "rerun-failed"])
def test_a_change_of_all_is_reported_in_a_line(mportal, portal, verb):
    portal.on(f"POST {ARRAY}/actions/{verb}", ok(array_json(counts={"CANCELLED": 2})))
    result = mportal("array", verb, "7")
    assert (result.exit_code, result.stdout.strip()) == (
        0,
        "Array 7 (ppo), 2 jobs, 1 at once: 2 CANCELLED",
    )


def test_a_refusal_is_reported(mportal, portal):
    detail = "No job of array 7 has failed or was cancelled."
    portal.on(f"POST {ARRAY}/actions/rerun-failed", problem(409, "conflict", detail))
    result = mportal("array", "rerun-failed", "7")
    assert (result.exit_code != 0, detail in result.stderr) == (True, True)


def test_deleted_jobs_are_counted(mportal, portal):
    portal.on(f"GET {ARRAY}", ok(array_json(counts={"QUEUED": 1}, deleted=1)))
    assert "2 jobs, 1 at once: 1 QUEUED, 1 deleted" in mportal("array", "get", "7").stdout
