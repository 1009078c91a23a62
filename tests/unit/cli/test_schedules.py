"""mportal schedule: its requests to the portal, and its output for the answers."""

from __future__ import annotations

import json

import pytest

from tests.unit.rest.fake_portal import MOMENT, job_json, ok, page, problem

RUN = {
    "slot": "2026-02-28T02:30:00Z",
    "is_manual": False,
    "outcome": "submitted",
    "outcome_label": "Submitted",
    "message": "",
    "job": 41,
    "job_status": "SUCCEEDED",
    "job_status_label": "Succeeded",
}
SCHEDULE = {
    "name": "nightly",
    "project": "rl",
    "job_name": "hello",
    "cron": "30 3 * * *",
    "zone": "Europe/Berlin",
    "overlap": "skip",
    "catch_up": "latest",
    "owner": "ada",
    "paused": False,
    "message": "",
    "next_at": "2026-07-01T01:30:00Z",
    "last": RUN,
    "last_job": 41,
    "created_at": MOMENT,
    "updated_at": MOMENT,
    "can_manage": True,
}
DETAIL = {
    **SCHEDULE,
    "spec_source": "run: x\n",
    "upcoming": ["2026-07-01T01:30:00Z"],
    "runs": [RUN, {**RUN, "outcome": "skipped", "job": None, "message": "Job 40 had not ended."}],
}
PAUSED = {**SCHEDULE, "paused": True, "next_at": None, "last": None, "message": "Paused by max."}
PATH = "/projects/rl/schedules"


@pytest.fixture(autouse=True)
def _in_berlin(in_zone):
    in_zone("Europe/Berlin")


@pytest.fixture
def job_file(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("name: hello\nrun: echo hello\n")
    return str(path)


def sent(portal):
    return json.loads(portal.requests[-1].content)


def test_one_is_added_with_the_text_of_a_file(mportal, portal, job_file):
    portal.on(f"POST {PATH}", ok(DETAIL, 201))
    result = mportal("schedule", "add", "nightly", job_file, "--cron", "30 3 * * *",
                     "--zone", "Europe/Berlin", "--overlap", "replace")  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "nightly: next 2026-07-01 03:30 CEST\n")
    assert sent(portal) == {
        "name": "nightly",
        "spec": "name: hello\nrun: echo hello\n",
        "cron": "30 3 * * *",
        "zone": "Europe/Berlin",
        "overlap": "replace",
    }


def test_a_remark_about_its_times_is_shown_where_it_is_added(mportal, portal, job_file):
    portal.on(f"POST {PATH}", ok({**DETAIL, "remarks": ["*/90 is odd."]}, 201))
    result = mportal("schedule", "add", "nightly", job_file, "--cron", "*/90 * * * *")
    assert result.stdout == "nightly: next 2026-07-01 03:30 CEST\nNote: */90 is odd.\n"


def test_all_that_is_wrong_is_reported_at_once(mportal, portal, job_file):
    errors = [
        {"path": "schedule.cron", "line": None, "code": "bad_value", "message": "No cron."},
        {"path": "nam", "line": 1, "code": "unknown_key", "message": "nam is unknown."},
    ]
    portal.on(f"POST {PATH}", problem(422, "invalid_spec", errors=errors))
    result = mportal("schedule", "add", "nightly", job_file, "--cron", "x")
    assert result.exit_code == 2
    assert "No cron." in result.stderr and "nam is unknown." in result.stderr


def test_what_is_wrong_with_a_file_is_reported_before_anything_is_sent(mportal, portal, tmp_path):
    (tmp_path / "bad.yaml").write_text("nam: x\n")
    result = mportal("schedule", "add", "nightly", str(tmp_path / "bad.yaml"), "--cron", "@daily")
    assert result.exit_code == 2
    assert portal.requests == []


def test_a_change_sends_what_is_given_and_no_more(mportal, portal, job_file):
    portal.on(f"PATCH {PATH}/nightly", ok(DETAIL))
    assert mportal("schedule", "change", "nightly", "--zone", "UTC").exit_code == 0
    assert sent(portal) == {"zone": "UTC"}
    assert mportal("schedule", "change", "nightly", job_file).exit_code == 0
    assert set(sent(portal)) == {"spec"}
    assert mportal("schedule", "change", "nightly").exit_code == 2


def test_they_are_listed_with_their_next_and_last_times(mportal, portal):
    portal.on(f"GET {PATH}", page([SCHEDULE, PAUSED]))
    out = mportal("schedule", "list").stdout
    assert "2026-07-01 03:30 CEST" in out
    assert "2026-02-28 03:30 CET, job 41: SUCCEEDED" in out
    assert "paused" in out and "Paused by max." in out
    assert mportal("schedule", "list", "-q").stdout == "nightly\nnightly\n"


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("UTC", "2026-07-01 01:30 UTC (03:30 Europe/Berlin)"),
        ("America/New_York", "2026-06-30 21:30 EDT (2026-07-01 03:30 Europe/Berlin)"),
        ("Europe/Paris", "2026-07-01 03:30 CEST\n"),
    ],
)
def test_each_time_is_in_the_zone_of_this_machine_and_in_the_schedules(
    mportal, portal, in_zone, zone, said
):
    in_zone(zone)
    portal.on(f"GET {PATH}/nightly", ok(DETAIL))
    assert f"Next: {said}" in mportal("schedule", "show", "nightly").stdout


@pytest.mark.parametrize("words", [("add", "nightly", "-"), ("change", "nightly")])
def test_a_wrong_time_is_reported_by_its_option(mportal, portal, words):
    errors = [
        {"path": "schedule.cron", "line": None, "code": "bad_value", "message": "No cron."},
        {"path": "schedule.zone", "line": None, "code": "bad_value", "message": "No zone."},
    ]
    for request in (f"POST {PATH}", f"PATCH {PATH}/nightly"):
        portal.on(request, problem(422, "invalid_spec", errors=errors))
    result = mportal("schedule", *words, "--cron", "x", "--zone", "y", input="run: x\n")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == ["--cron: No cron.", "--zone: No zone."]


def test_one_is_shown_with_its_times(mportal, portal):
    portal.on(f"GET {PATH}/nightly", ok(DETAIL))
    out = mportal("schedule", "show", "nightly").stdout
    assert "Next: 2026-07-01 03:30 CEST" in out
    assert "skipped" in out and "Job 40 had not ended." in out


@pytest.mark.parametrize(
    ("verb", "answer", "said"),
    [
        ("pause", {**DETAIL, **PAUSED}, "nightly: paused\n"),
        ("resume", DETAIL, "nightly: next 2026-07-01 03:30 CEST\n"),
    ],
)
def test_one_is_paused_and_resumed(mportal, portal, verb, answer, said):
    portal.on(f"POST {PATH}/nightly/actions/{verb}", ok(answer))
    assert mportal("schedule", verb, "nightly").stdout == said


def test_a_run_names_its_job(mportal, portal):
    portal.on(f"POST {PATH}/nightly/actions/run", ok(job_json(), 201))
    result = mportal("schedule", "run", "nightly")
    assert result.stdout == "Job 42 (hello): http://portal/rl/jobs/42\n"


def test_several_are_removed_and_the_refusal_of_one_keeps_no_other(mportal, portal):
    portal.on(f"DELETE {PATH}/a", problem(403, "permission_denied", "Not yours."))
    portal.on(f"DELETE {PATH}/b", ok(None, 204))
    result = mportal("schedule", "rm", "a", "b")
    assert result.stdout == "b: removed\n"
    assert "Not yours." in result.stderr
    assert result.exit_code == 125


def test_a_file_of_several_jobs_is_refused_at_the_line_between_them(mportal, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("name: one\nrun: echo 1\n---\nname: two\nrun: echo 2\n")
    result = mportal("schedule", "add", "nightly", str(path), "-c", "@daily")
    assert result.exit_code == 2
    assert "job.yaml:3: " in result.stderr and "a schedule runs one job" in result.stderr
