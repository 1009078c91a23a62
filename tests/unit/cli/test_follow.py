"""Following, waiting, reading logs: what is shown, and with which code the command ends."""

from __future__ import annotations

import httpx
import pytest

from monarch_client.cli.waiting import wait
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
    """Return a function that scripts a job that ends as given, after a stream of events."""

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
    failed = stage_json("run", "failed", duration_s=3.0, failure="It failed.")
    job = ended_job("FAILED", exit_code=7, message="It failed.", hint="Fix it.")
    ended(job, event("line", [line_json(1, "one"), line_json(2, "two")], "1:2"))
    portal.on(
        ATTEMPTS,
        page([attempt_json(stages=[stage_json("launch", "pending")])]),
        page([attempt_json(stages=[done, failed], message="It failed.")]),
    )
    result = mportal("logs", "-f", "42")
    assert result.stdout == "one\ntwo\n"
    assert result.stderr.splitlines() == [
        "✓ Setup              2.1 s",
        "✗ Run                3.0 s",
        "Job 42: Failed after 5.0 s, exit code 7",
        "  It failed.",
        "  Fix it.",
    ]


def test_a_second_attempt_is_announced_with_the_reason_why_the_first_one_ended(
    mportal, portal, ended
):
    ended(ended_job(), event("job"))
    failed = stage_json("run", "failed", duration_s=1.0, failure="It failed.")
    first = attempt_json(1, stages=[failed], message="It failed.")
    second = attempt_json(2, stages=[stage_json("run", "done", duration_s=2.0)])
    portal.on(ATTEMPTS, page([first]), page([second, first]))
    assert mportal("logs", "-f", "42").stderr.splitlines()[:4] == [
        "✗ Run                1.0 s",
        "Attempt 1 ended, another follows: It failed.",
        "Attempt 2",
        "✓ Run                2.0 s",
    ]


def test_why_an_attempt_ended_is_said_while_the_next_one_is_waited_for(mportal, portal, ended):
    ended(ended_job())
    recovering = ok(job_json(status="RECOVERING", message="It failed."))
    portal.on(JOB, recovering, recovering, ok(ended_job()))
    portal.on(ATTEMPTS, page([attempt_json(1, message="It failed.")]))
    said = mportal("logs", "-f", "42").stderr
    assert said.count("Attempt 1 ended, another follows: It failed.") == 1


def test_an_attempt_that_found_no_room_is_reported_as_waiting_once(mportal, portal, ended):
    ended(ended_job())
    waits = ok(job_json(wait_reason="BACKOFF", wait_message="No room."))
    portal.on(JOB, waits, waits, ok(ended_job()))
    first, second = attempt_json(1, message="No room."), attempt_json(2)
    portal.on(ATTEMPTS, page([first]), page([second, first]))
    said = mportal("logs", "-f", "42").stderr
    assert (said.count("No room."), said.count("Waits: No room.")) == (1, 1)


def test_what_a_cancelled_job_was_doing_was_stopped_and_did_not_fail(mportal, portal, ended):
    ended(ended_job("CANCELLED", message="Cancelled by alice."))
    stopped = stage_json("run", "stopped", duration_s=9.0, failure="Stopped from outside.")
    portal.on(ATTEMPTS, page([attempt_json(stages=[stopped])]))
    said = mportal("logs", "-f", "42").stderr
    assert said.startswith("■ Run                9.0 s\n")
    assert "Cancelled by alice." in said and "outside" not in said


def test_why_a_job_waits_is_said_once(mportal, portal, ended):
    ended(ended_job(), event("job"), event("job"))
    waits = ok(job_json(wait_message="No free capacity."))
    portal.on(JOB, waits, waits, waits, ok(ended_job()))
    assert mportal("logs", "-f", "42").stderr.count("Waits: No free capacity.") == 1


def test_lines_of_several_ranks_say_whose_they_are(mportal, ended):
    rows = [line_json(1, "a"), line_json(2, "b", rank=1), line_json(3, "c", stream="portal")]
    ended(ended_job(num_nodes=2), event("line", rows, "1:3"))
    assert mportal("logs", "-f", "42").stdout == "node 0 | a\nnode 1 | b\nportal | c\n"


def test_a_terminal_gets_a_color_for_each_rank(mportal, ended):
    rows = [line_json(1, "a"), line_json(2, "b", rank=1)]
    ended(ended_job(num_nodes=2), event("line", rows, "1:2"))
    lines = mportal("logs", "-f", "42", color=True).stdout.splitlines()
    assert lines == ["\x1b[36mnode 0 | \x1b[0ma", "\x1b[35mnode 1 | \x1b[0mb"]


def test_only_the_wanted_lines_are_followed(mportal, portal, ended):
    ended(ended_job(num_nodes=2))
    portal.on(ATTEMPTS, page([attempt_json(2), attempt_json(1)]))
    mportal("logs", "-f", "42", "--rank", "1", "--stream", "stderr", "--attempt", "2")
    requested = dict(portal.seen(STREAM)[0].url.params)
    assert requested == {"rank": "1", "stream": "stderr", "attempt": "2"}


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


def test_a_lost_connection_is_reported_and_outlived(mportal, portal, ended):
    ended(ended_job())
    portal.on(STREAM, stream(httpx.ReadError("reset")), stream(event("end")))
    result = mportal("logs", "-f", "42")
    assert result.exit_code == 0
    assert "Connection lost (reset)" in result.stderr


def test_each_time_the_portal_is_away_is_reported_once(mportal, portal, ended):
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


def test_waiting_outlives_a_portal_that_goes_away_for_long(portal):
    away = [httpx.ConnectError("refused")] * 3
    portal.on(JOB, ok(job_json()), *away, ok(job_json()), ok(ended_job("FAILED", exit_code=9)))
    assert wait(portal.client(patience_s=0), "rl", 42, None) == 9


def test_waiting_may_end_before_the_job(mportal, portal):
    portal.on(JOB, ok(job_json()))
    result = mportal("wait", "42", "--timeout", "0")
    assert result.exit_code == 124
    assert result.stderr == "Job 42: Queued, not waited for any longer\n"


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
        "node 0 | begin", "node 0 | cut", "node 1 | other", "node 0 | open",
    ]  # fmt: skip


def test_a_job_that_is_not_there_is_said_so(mportal, portal):
    portal.on(JOB, problem(404, "not_found", "There is no job 42 in project rl."))
    result = mportal("logs", "-f", "42")
    assert result.exit_code == 2
    assert "There is no job 42" in result.stderr
