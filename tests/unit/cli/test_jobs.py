"""mportal ps, get, cancel, hold, release, prioritize, extend, rerun, delete."""

from __future__ import annotations

import json

import httpx
import pytest
import yaml

from monarch_client.wire.bulk import BULK_LIMIT
from tests.unit.rest.fake_portal import (
    attempt_json,
    ended_job,
    job_json,
    ok,
    page,
    stage_json,
)

JOBS = "GET /projects/rl/jobs"
JOB = f"{JOBS}/42"
BULK = "POST /projects/rl/jobs/actions"


def outcome_json(job, result="done", **fields):
    empty = {"name": "hello", "message": "Done.", "code": "", "new_job": None}
    return {"job": job, "result": result, **empty, "previous_priority": None, **fields}


def test_ps_lists_jobs_in_columns(mportal, portal):
    ran = {"started_at": "2026-03-01T12:00:00Z", "ended_at": "2026-03-01T12:05:00Z"}
    failed = ended_job("FAILED", id=7, name="train", stop_reason="USER_CODE", **ran)
    portal.on(JOBS, page([job_json(wait_message="No capacity."), failed]))
    header, first, second = mportal("ps").stdout.splitlines()
    assert header.split() == ["ID", "NAME", "STATUS", "NODES", "USER", "AGE", "DURATION", "WHY"]
    assert "  5 min  " in second
    assert first.split()[:5] == ["42", "hello", "QUEUED", "1", "alice"]
    assert first.endswith("No capacity.")
    assert second.endswith("USER_CODE")


USE = {
    "at": "2030-01-01T00:00:00+00:00",
    "now": 87.2,
    "mean": 82.0,
    "lowest": 45.0,
    "idle_since": None,
    "recent": [80.0, 87.2],
}


def test_ps_and_get_show_gpus_and_their_use(mportal, portal):
    gpus = {"num_nodes": 8, "gpu_type": "H100", "gpu_count": 64, "gpu_use": USE}
    portal.on(JOBS, page([job_json(**gpus), job_json(id=7)]))
    header, first, second = mportal("ps", "--gpu", "h100").stdout.splitlines()
    assert header.split("  ")[0] == "ID" and "GPU USE" in header
    assert "8 x H100:8" in first and "87 %" in first
    assert "%" not in second
    assert portal.seen(JOBS)[0].url.params["gpu"] == "h100"
    portal.on(JOB, ok(job_json(**gpus)))
    portal.on(f"{JOB}/attempts", page([]))
    text = mportal("get", "42").stdout
    assert "Nodes       8 x H100:8 on" in text
    assert "GPU use     87 %, mean 82 %, lowest host 45 %" in text


def test_ps_shows_what_jobs_cost_where_machines_have_a_price(mportal, portal):
    portal.on(JOBS, page([job_json(usd="12.50"), job_json(id=7, usd=None)]))
    header, first, second = mportal("ps").stdout.splitlines()
    assert header.split()[-2:] == ["COST", "WHY"]
    assert "$12.50" in first and "$" not in second
    portal.on(JOB, ok(job_json(usd="12.50")))
    portal.on(f"{JOB}/attempts", page([]))
    assert "Cost        $12.50" in mportal("get", "42").stdout


def test_ps_watches_until_ctrl_c_and_prints_changes_alone(mportal, portal):
    def interrupted(_):
        raise KeyboardInterrupt

    queued = page([job_json(created_at="2000-01-01T00:00:00Z")])
    running = page([job_json(created_at="2000-01-01T00:00:00Z", status="RUNNING")])
    away = httpx.ConnectError("refused")
    portal.on(JOBS, queued, queued, away, running, interrupted)
    done = mportal("ps", "-w")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["STATUS", "QUEUED", "STATUS", "RUNNING"]
    assert mportal("ps", "-w", "-o", "json").exit_code == 2


def test_ps_sends_the_requested_filters(mportal, portal):
    portal.on(JOBS, page([]))
    mportal("ps", "-s", "running,queued", "-u", "me", "-n", "5", "--search", "tr")
    assert dict(portal.seen(JOBS)[0].url.params) == {
        "status": "RUNNING,QUEUED", "user": "me", "limit": "5", "q": "tr",
    }  # fmt: skip


def test_ps_filters_by_labels_reason_and_time_and_sorts(mportal, portal):
    portal.on(JOBS, page([]))
    options = "-l team=rl -l sweep --reason oom --since 24h --queue q --sort -cost --pin"
    mportal("ps", *options.split())
    assert dict(portal.seen(JOBS)[0].url.params) == {
        "label": "team=rl,sweep", "reason": "OOM", "since": "24h", "queue": "q", "sort": "-cost",
        "pin": "true", "limit": "20",
    }  # fmt: skip


@pytest.mark.feature("S2.6")
def test_ps_lists_the_children_of_a_job_and_get_names_the_parent(mportal, portal):
    portal.on(JOBS, page([]))
    mportal("ps", "--parent", "7")
    assert portal.seen(JOBS)[0].url.params["parent"] == "7"
    portal.on(JOB, ok(job_json(parent=7, parent_attempt=1)))
    portal.on(f"{JOB}/attempts", page([]))
    assert "Parent      7" in mportal("get", "42").stdout


def test_ps_prints_for_programs(mportal, portal):
    portal.on(JOBS, page([job_json(), job_json(id=41)]))
    assert mportal("ps", "-q").stdout == "42\n41\n"
    assert [row["id"] for row in json.loads(mportal("ps", "-o", "json").stdout)] == [42, 41]
    assert [row["id"] for row in yaml.safe_load(mportal("ps", "-o", "yaml").stdout)] == [42, 41]


def test_get_shows_stages_and_workers(mportal, portal):
    worker = {
        "rank": 0, "mesh": "trainers", "address": "127.64.1.10:22222", "status": "EXITED",
        "python": "3.11", "pid": 7, "exit_code": 3, "detail": "", "ready_at": None,
        "ended_at": None,
    }  # fmt: skip
    stages = [stage_json("launch", "done", duration_s=0.42)]
    portal.on(JOB, ok(ended_job("FAILED", message="It failed.", hint="Fix it.")))
    portal.on(f"{JOB}/attempts", page([attempt_json(stages=stages, workers=[worker])]))
    text = mportal("get", "42").stdout
    for part in ("It failed.", "Fix it.", "http://portal/rl/jobs/42", "0.4 s", "trainers"):
        assert part in text


def test_get_says_each_sentence_once(mportal, portal):
    def failed(said):
        return [stage_json("run", "failed", failure=said), stage_json("setup", "done")]

    last = attempt_json(2, stages=failed("It failed."), message="It failed.")
    first = attempt_json(1, stages=failed("No data."), message="No data.")
    portal.on(JOB, ok(ended_job("FAILED", message="It failed.")))
    portal.on(f"{JOB}/attempts", page([last, first]))
    text = mportal("get", "42").stdout
    assert (text.count("It failed."), text.count("No data.")) == (1, 1)


def test_get_shows_what_a_stage_knows_beyond_the_job(mportal, portal):
    stage = stage_json("workers", "failed", failure="Node 1 at 10.0.0.2:22222 never listened.")
    portal.on(JOB, ok(ended_job("FAILED", message="A worker never listened.")))
    portal.on(f"{JOB}/attempts", page([attempt_json(stages=[stage])]))
    assert "Node 1 at 10.0.0.2:22222" in mportal("get", "42").stdout


def test_get_says_why_a_held_job_waits_and_what_to_do(mportal, portal):
    portal.on(JOB, ok(job_json(wait_message="Held by alice.", hint="Release it.")))
    portal.on(f"{JOB}/attempts", page([]))
    text = mportal("get", "42").stdout
    assert "Why         Held by alice.\nWhat to do  Release it.\n" in text


def event_json(**fields):
    empty = dict.fromkeys(("verb", "old_status", "new_status", "reason", "message"), "")
    who = {"actor": "", "source": "", "attempt": None}
    return {"id": 1, "kind": "note", **empty, **who, **fields}


def test_events_lists_the_history_in_order(mportal, portal):
    def change(number, **fields):
        return event_json(id=number, at=f"2026-03-01T12:00:0{number}Z", **fields)

    held = change(1, verb="hold", message="Held by alice.", actor="alice", source="10.0.0.9")
    moved = change(2, old_status="QUEUED", new_status="RUNNING")
    note = change(3, verb="evidence", message="Traceback\nValueError")
    portal.on(f"{JOB}/events", page([held, moved], next="2"), page([note]))
    lines = [" ".join(line.split()) for line in mportal("events", "42").stdout.splitlines()]
    assert lines[1:] == [
        "2026-03-01 12:00:01 UTC hold: Held by alice. alice from 10.0.0.9",
        "2026-03-01 12:00:02 UTC QUEUED -> RUNNING",
        "2026-03-01 12:00:03 UTC evidence: Traceback",
    ]
    assert [dict(r.url.params)["after"] for r in portal.seen(f"{JOB}/events")] == ["0", "2"]


def test_times_are_those_of_the_clock_of_this_machine(mportal, portal, in_zone):
    in_zone("America/New_York")
    portal.on(f"{JOB}/events", page([event_json(at="2026-03-01T12:00:01Z")]))
    assert "2026-03-01 07:00:01 EST" in mportal("events", "42").stdout
    extended = job_json(stops_at="2026-03-01T15:00:00Z", max_duration_s=10800)
    portal.on("POST /projects/rl/jobs/42/actions/extend", ok(extended))
    assert "until 2026-03-01 10:00 EST" in mportal("extend", "42", "1h").stdout


def test_get_as_json_is_the_job_alone(mportal, portal):
    portal.on(JOB, ok(job_json(spec={"run": "x"})))
    assert json.loads(mportal("get", "42", "-o", "json").stdout)["spec"] == {"run": "x"}
    assert len(portal.requests) == 1


def test_cancel_takes_several_jobs_in_one_request(mportal, portal):
    second = outcome_json(2, message="Stopping.")
    portal.on(BULK, ok({"results": [outcome_json(1, message="Cancelled."), second]}))
    result = mportal("cancel", "1", "2")
    assert result.stdout == "Job 1: Cancelled.\nJob 2: Stopping.\n"
    assert json.loads(portal.requests[0].content) == {"action": "cancel", "jobs": [1, 2]}
    assert len(portal.requests) == 1


def test_more_jobs_than_one_request_takes_are_sent_in_several(mportal, portal):
    portal.on(BULK, ok({"results": []}))
    mportal("hold", *map(str, range(1, BULK_LIMIT + 2)))
    sizes = [len(json.loads(each.content)["jobs"]) for each in portal.requests]
    assert sizes == [BULK_LIMIT, 1]


def test_prioritize_takes_several_jobs_and_one_number(mportal, portal):
    portal.on(BULK, ok({"results": []}))
    mportal("prioritize", "1", "2", "70")
    body = {"action": "prioritize", "jobs": [1, 2], "priority": 70}
    assert json.loads(portal.requests[0].content) == body


@pytest.mark.parametrize("wrong", ["101", "-1", "high"])
def test_a_priority_that_is_none_asks_the_portal_nothing(mportal, portal, wrong):
    result = mportal("prioritize", "1", "--", wrong)
    assert result.exit_code == 2
    assert "PRIORITY" in result.stderr
    assert not portal.requests


@pytest.mark.parametrize("verb", ["cancel", "hold", "release"])
def test_one_job_that_is_refused_does_not_keep_the_others_from_it(mportal, portal, verb):
    refused = outcome_json(1, result="refused", code="not_found", message="No job 1.")
    portal.on(BULK, ok({"results": [refused, outcome_json(2)]}))
    result = mportal(verb, "1", "2")
    assert result.stderr == "Error: No job 1.\n"
    assert result.stdout.startswith("Job 2: ")
    assert result.exit_code == 125


def test_a_rerun_of_several_jobs_prints_the_new_ones(mportal, portal):
    refused = outcome_json(3, result="refused", message="No.")
    rows = [outcome_json(1, new_job=11), outcome_json(2, new_job=12), refused]
    portal.on(BULK, ok({"results": rows}))
    result = mportal("rerun", "1", "2", "3", "-q")
    assert (result.stdout, result.stderr, result.exit_code) == ("11\n12\n", "Error: No.\n", 125)
    assert json.loads(portal.requests[0].content)["drop_deleted"] is False
    assert mportal("rerun", "1", "2", "-f").exit_code == 2


def test_rerun_is_a_new_job(mportal, portal):
    portal.on("POST /projects/rl/jobs/42/actions/rerun", ok(job_json(id=43), 201))
    assert mportal("rerun", "42", "-q").stdout == "43\n"
    assert mportal("rerun", "42", "-q", "--drop-deleted").stdout == "43\n"
    bodies = [each.content for each in portal.seen("POST /projects/rl/jobs/42/actions/rerun")]
    assert (bodies[0], json.loads(bodies[1])) == (b"", {"drop_deleted": True})


@pytest.mark.parametrize(("answer", "gone"), [("y\n", True), ("n\n", False)])
def test_delete_asks_first(mportal, portal, answer, gone):
    portal.on(BULK, ok({"results": [outcome_json(42)]}))
    portal.on(JOB, ok(job_json(status="CANCELLED", is_final=True)))
    result = mportal("delete", "42", input=answer)
    assert "It never started, and has no log." in result.stderr
    assert bool(portal.seen(BULK)) == gone


def test_delete_need_not_ask(mportal, portal):
    portal.on(BULK, ok({"results": [outcome_json(42, message="Deleted.")]}))
    assert mportal("delete", "-y", "42").stdout == "Job 42: Deleted.\n"


def test_extend_asks_once_however_often_it_is_sent_and_says_until_when(mportal, portal):
    path = f"POST {JOB.removeprefix('GET ')}/actions/extend"
    answer = job_json(max_duration_s=10_800, stops_at="2026-03-01T15:00:00Z")
    portal.on(path, httpx.ConnectError("away"), ok(answer))
    result = mportal("extend", "42", "2h")
    assert "may run for 3:00:00, until 2026-03-01 15:00 UTC" in result.stdout + result.stderr
    requests = portal.seen(path)
    assert [json.loads(request.content) for request in requests] == [{"duration": "2h"}] * 2
    assert len({request.headers["Idempotency-Key"] for request in requests}) == 1


def test_get_shows_what_was_recognised(mportal, portal):
    found = {"code": "x", "title": "No driver", "evidence": "libcuda\x1b]0;x", "fix": "Run it."}
    portal.on(JOB, ok(job_json()))
    portal.on(f"{JOB}/attempts", page([attempt_json(diagnosis=found)]))
    shown = mportal("get", "42").stdout
    assert "Diagnosis   No driver" in shown
    assert "Evidence    libcuda\\x1b" in shown
    assert "Fix         Run it." in shown


def test_get_says_where_the_workers_of_earlier_attempts_are(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(f"{JOB}/attempts", page([attempt_json()]))
    assert "earlier attempts" not in mportal("get", "42").stdout
    portal.on(f"{JOB}/attempts", page([attempt_json(), attempt_json(number=2)]))
    assert "The workers of earlier attempts: --all lists them." in mportal("get", "42").stdout
    assert "earlier attempts" not in mportal("get", "42", "--all").stdout


def test_label_takes_jobs_and_changes_in_one_request(mportal, portal):
    portal.on(BULK, ok({"results": [outcome_json(1, message="Labels changed."), outcome_json(2)]}))
    result = mportal("label", "1", "2", "team=rl", "old-")
    assert result.stdout.splitlines()[0] == "Job 1: Labels changed."
    body = {"action": "label", "jobs": [1, 2], "labels": {"team": "rl", "old": None}}
    assert json.loads(portal.requests[0].content) == body
    for words in (["1"], ["team=rl"], ["1", "team"], ["1", "te am=x"], ["1", "a=" + "x" * 64]):
        assert mportal("label", *words).exit_code == 2, words
    assert len(portal.requests) == 1


def test_a_note_is_set_and_removed(mportal, portal):
    portal.on("PATCH /projects/rl/jobs/42", ok(job_json(note="bad seed")), ok(job_json()))
    assert mportal("note", "42", "bad seed").stdout == "Job 42: noted\n"
    assert mportal("note", "42", "").stdout == "Job 42: note removed\n"
    bodies = [json.loads(each.content) for each in portal.requests]
    assert bodies == [{"note": "bad seed"}, {"note": ""}]


def test_get_shows_labels_and_the_note(mportal, portal):
    portal.on(JOB, ok(job_json(labels={"team": "rl"}, note="bad seed")))
    portal.on(f"{JOB}/attempts", page([]))
    assert "Labels      team=rl\nNote        bad seed\n" in mportal("get", "42").stdout


def test_ps_lists_a_saved_view_which_options_refine(mportal, portal):
    view = {
        "id": 3, "name": "bad", "query": "status=FAILED&since=24h", "is_shared": True,
        "owner": "ada", "can_delete": False, "url": "http://portal/rl/jobs?status=FAILED",
    }  # fmt: skip
    portal.on("GET /projects/rl/views", page([view]))
    portal.on(JOBS, page([]))
    mportal("ps", "--view", "bad", "--since", "1h")
    params = dict(portal.seen(JOBS)[0].url.params)
    assert params == {"status": "FAILED", "since": "1h", "limit": "20"}
    assert mportal("ps", "--view", "none").exit_code == 2


def test_views_are_saved_and_deleted(mportal, portal):
    view = {
        "id": 3, "name": "bad", "query": "status=FAILED", "is_shared": True, "owner": "ada",
        "can_delete": True, "url": "http://portal/rl/jobs?status=FAILED",
    }  # fmt: skip
    portal.on("POST /projects/rl/views", ok(view, 201))
    result = mportal("view", "save", "bad", "status=FAILED", "--shared")
    assert "http://portal/rl/jobs" in result.stdout
    body = {"name": "bad", "query": "status=FAILED", "shared": True}
    assert json.loads(portal.requests[0].content) == body
    portal.on("DELETE /projects/rl/views/3", ok(None, 204))
    assert mportal("view", "delete", "3").stdout == "View 3: deleted\n"
