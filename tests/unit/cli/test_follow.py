"""Following, waiting, reading logs: what is shown, and with which code the command ends."""

from __future__ import annotations

import httpx
import pytest

from tests.unit.rest.fake_portal import (
    attempt_json,
    ended_job,
    event,
    job_json,
    line_json,
    ok,
    page,
    problem,
    stage_json,
    stream,
)

JOB = "GET /projects/rl/jobs/42"
ATTEMPTS = f"{JOB}/attempts"
LOGS = f"{JOB}/logs"
STREAM = f"{JOB}/logs/stream"


@pytest.fixture
def ended(portal):
    """Scripts a job that ends like this, after a stream of these events."""

    def script(job, *events):
        portal.on(JOB, ok(job_json(num_nodes=job["num_nodes"])), ok(job))
        portal.on(ATTEMPTS, page([]))
        portal.on(STREAM, stream(*events, event("end")))

    return script


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (ended_job("SUCCEEDED", exit_code=0), 0),
        (ended_job("FAILED", exit_code=7), 7),
        (ended_job("FAILED", exit_code=None), 1),
        (ended_job("FAILED", exit_code=0), 1),
        (ended_job("FAILED", exit_code=-9), 1),
        (ended_job("FAILED", exit_code=256), 1),
        (ended_job("CANCELLED", exit_code=None), 143),
        (ended_job("CANCELLED", exit_code=0), 143),
    ],
)
@pytest.mark.parametrize("command", [("logs", "-f"), ("wait",)])
def test_the_exit_code_is_the_jobs(mportal, ended, job, code, command):
    ended(job)
    assert mportal(*command, "42").exit_code == code


def test_the_log_is_on_standard_output_and_the_rest_is_not(mportal, portal, ended):
    done = stage_json("setup", "done", duration_s=2.13)
    failed = stage_json("run", "failed", duration_s=3.0, failure="exit code 7")
    job = ended_job("FAILED", exit_code=7, message="It failed.", hint="Fix it.")
    ended(job, event("line", [line_json(1, "one"), line_json(2, "two")], "1:2"))
    portal.on(
        ATTEMPTS,
        page([attempt_json(stages=[stage_json("launch", "pending")])]),
        page([attempt_json(stages=[done, failed])]),
    )
    result = mportal("logs", "-f", "42")
    assert result.stdout == "one\ntwo\n"
    assert result.stderr.splitlines() == [
        "✓ Setup              2.1 s",
        "✗ Run                3.0 s  exit code 7",
        "Job 42: Failed after 5.0 s, exit code 7",
        "  It failed.",
        "  Fix it.",
    ]


def test_a_second_attempt_is_announced(mportal, portal, ended):
    ended(ended_job())
    stages = [stage_json("run", "done", duration_s=1.0)]
    portal.on(ATTEMPTS, page([attempt_json(2, stages=stages), attempt_json(1, stages=stages)]))
    assert mportal("logs", "-f", "42").stderr.splitlines()[:3] == [
        "✓ Run                1.0 s",
        "Attempt 2",
        "✓ Run                1.0 s",
    ]


def test_why_a_job_waits_is_said_once(mportal, portal, ended):
    ended(ended_job(), event("job"), event("job"))
    waits = ok(job_json(wait_message="No free capacity."))
    portal.on(JOB, waits, waits, waits, ok(ended_job()))
    assert mportal("logs", "-f", "42").stderr.count("Waits: No free capacity.") == 1


def test_lines_of_several_ranks_say_whose_they_are(mportal, ended):
    rows = [line_json(1, "a"), line_json(2, "b", rank=1), line_json(3, "c", stream="portal")]
    ended(ended_job(num_nodes=2), event("line", rows, "1:3"))
    assert mportal("logs", "-f", "42").stdout == "rank 0 | a\nrank 1 | b\nportal | c\n"


def test_a_terminal_gets_a_colour_for_each_rank(mportal, ended):
    rows = [line_json(1, "a"), line_json(2, "b", rank=1)]
    ended(ended_job(num_nodes=2), event("line", rows, "1:2"))
    lines = mportal("logs", "-f", "42", color=True).stdout.splitlines()
    assert lines == ["\x1b[36mrank 0 | \x1b[0ma", "\x1b[35mrank 1 | \x1b[0mb"]


def test_only_the_wanted_lines_are_followed(mportal, portal, ended):
    ended(ended_job())
    mportal("logs", "-f", "42", "--rank", "1", "--stream", "stderr", "--attempt", "2")
    asked = dict(portal.seen(STREAM)[0].url.params)
    assert asked == {"rank": "1", "stream": "stderr", "attempt": "2"}


@pytest.mark.parametrize("command", [("logs", "-f"), ("wait",)])
def test_ctrl_c_leaves_and_says_how_to_come_back(mportal, portal, command):
    def interrupt(request):
        raise KeyboardInterrupt

    portal.on(JOB, ok(job_json()), ok(job_json()), interrupt)
    portal.on(ATTEMPTS, page([]))
    portal.on(STREAM, interrupt)
    result = mportal(*command, "42")
    assert result.exit_code == 130
    assert "job 42 goes on" in result.stderr
    assert "mportal logs -f 42" in result.stderr
    assert not any(request.method != "GET" for request in portal.requests)


def test_a_lost_connection_is_told_and_outlived(mportal, portal, ended):
    ended(ended_job())
    portal.on(STREAM, stream(httpx.ReadError("reset")), stream(event("end")))
    result = mportal("logs", "-f", "42")
    assert result.exit_code == 0
    assert "Connection lost (reset)" in result.stderr


def test_each_time_the_portal_is_away_is_told_once(mportal, portal, ended):
    ended(ended_job())
    lost = httpx.ReadError("reset")
    back = stream(event("line", [line_json(1, "one")], "1:1"), lost)
    portal.on(STREAM, lost, lost, back, lost, stream(event("end")))
    said = mportal("logs", "-f", "42").stderr
    assert said.count("Connection lost") == 2
    assert said.count("Connected again.") == 2


def test_waiting_takes_the_first_code_that_is_no_success(mportal, portal):
    portal.on(JOB, ok(ended_job()))
    portal.on("GET /projects/rl/jobs/43", ok(ended_job("FAILED", id=43, exit_code=9)))
    assert mportal("wait", "42", "43", "42").exit_code == 9


def test_waiting_may_end_before_the_job(mportal, portal):
    portal.on(JOB, ok(job_json()))
    result = mportal("wait", "42", "--timeout", "0")
    assert result.exit_code == 124
    assert result.stderr == "Job 42: Queued, not waited for any longer\n"


def test_the_log_so_far_is_read_page_by_page(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(
        LOGS,
        page([line_json(1, "a")], next="1:1"),
        page([], next="1:5"),
        page([line_json(6, "b")]),
    )
    result = mportal("logs", "42", "--rank", "0", "--attempt", "1")
    assert result.stdout == "a\nb\n"
    asked = [dict(request.url.params) for request in portal.seen(LOGS)]
    assert [params.get("after") for params in asked] == [None, "1:1", "1:5"]
    assert {params["rank"] for params in asked} == {"0"}


def test_the_tail_is_read_backwards(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(LOGS, page([line_json(7, "g")], previous="1:7"), page([line_json(6, "f")]))
    assert mportal("logs", "42", "--tail", "5").stdout == "f\ng\n"
    assert [dict(r.url.params)["before"] for r in portal.seen(LOGS)] == ["end", "1:7"]


def test_a_tail_can_be_followed(mportal, portal, ended):
    ended(ended_job(), event("line", [line_json(8, "h")], "1:8"))
    assert mportal("logs", "-f", "42", "-n", "1").stdout == "h\n"
    assert dict(portal.seen(STREAM)[0].url.params) == {"tail": "1"}


def test_the_pieces_of_a_long_line_are_put_together(mportal, ended):
    rows = [
        line_json(1, "be", more=True),
        line_json(2, "gin"),
        line_json(3, "cut", more=True),
        line_json(4, "other", rank=1),
        line_json(5, "open", more=True),
    ]
    ended(ended_job(num_nodes=2), event("line", rows, "1:5"))
    assert mportal("logs", "-f", "42").stdout.splitlines() == [
        "rank 0 | begin", "rank 0 | cut", "rank 1 | other", "rank 0 | open",
    ]  # fmt: skip


def test_a_job_that_is_not_there_is_said_so(mportal, portal):
    portal.on(JOB, problem(404, "not_found", "There is no job 42 in project rl."))
    result = mportal("logs", "-f", "42")
    assert result.exit_code == 125
    assert "There is no job 42" in result.stderr
