"""mportal logs: which lines are read, how they look, and the message when there are none."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from monarch_client.cli.log_printer import LogPrinter
from monarch_client.cli.progress import Progress
from monarch_client.rest.decoding import decode
from monarch_client.wire.attempts import Attempt
from monarch_client.wire.jobs import Job
from monarch_client.wire.logs import LogLine
from tests.unit.rest.fake_portal import (
    attempt_json,
    ended_job,
    job_json,
    line_json,
    ok,
    page,
    problem,
)

JOB = "GET /projects/rl/jobs/42"
ATTEMPTS = f"{JOB}/attempts"
LOGS = f"{JOB}/logs"


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_an_attempt_or_a_rank_that_the_job_does_not_have_is_a_mistake(mportal, portal, follow):
    portal.on(JOB, ok(ended_job(num_nodes=2)))
    portal.on(ATTEMPTS, page([attempt_json(2), attempt_json(1)]))
    result = mportal("logs", *follow, "42", "-a", "3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Job 42 has no attempt 3; there is: 1, 2." in result.stderr
    result = mportal("logs", *follow, "42", "-r", "2")
    assert (result.exit_code, "Job 42 has no node 2, but 0 to 1." in result.stderr) == (2, True)


def test_the_log_of_an_attempt_before_any_has_begun_is_a_mistake(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(ATTEMPTS, page([]))
    result = mportal("logs", "42", "-a", "1")
    assert (result.exit_code, "none has begun, it is Queued" in result.stderr) == (2, True)


def test_a_stream_without_a_line_says_so_and_which_ones_have_some(mportal, portal):
    portal.on(JOB, ok(ended_job()))

    def lines(request):
        some = [line_json(1, "a")] if request.url.params["stream"] in {"stdout", "portal"} else []
        return page(some)(request)

    portal.on(LOGS, lines)
    result = mportal("logs", "42", "-s", "stderr")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Job 42 has no line of stderr. There are lines of stdout, portal.\n"


def test_a_job_that_printed_nothing_says_so(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(LOGS, page([]))
    result = mportal("logs", "42")
    assert (result.exit_code, result.stderr) == (0, "Job 42 printed nothing so far.\n")
    assert mportal("logs", "42", "-r", "0").exit_code == 1
    assert mportal("logs", "42", "-n", "0").stderr == ""


REMOVED = "The log was removed on 2026-03-01 after 30 days."


@pytest.mark.parametrize("arguments", [(), ("-n", "5"), ("--grep", "x")])
def test_a_log_that_was_removed_says_so_rather_than_that_nothing_was_printed(
    mportal, portal, arguments
):
    portal.on(JOB, ok(ended_job()))
    empty = ok({"results": [], "next": None, "previous": None, "removed": REMOVED})
    portal.on(LOGS, empty)
    portal.on(SEARCH, empty)
    result = mportal("logs", "42", *arguments)
    assert (result.stdout, result.stderr) == ("", f"{REMOVED}\n")


def test_following_a_job_whose_log_was_removed_says_so(capsys):
    attempt = decode(Attempt, attempt_json(2, log_removed_at="2026-03-01T10:00:00Z"))
    progress = Progress()
    for _ in range(2):
        progress.show(decode(Job, ended_job()), [attempt])
    assert capsys.readouterr().err.count("The log of attempt 2 was removed on 2026-03-01.") == 1


def test_a_progress_bar_in_a_pipe_is_a_line_for_each_of_its_states(mportal, portal):
    portal.on(JOB, ok(ended_job(num_nodes=2)))
    bar = [
        line_json(1, "\r  0%", more=True),
        line_json(2, "\r 50%\r", more=True),
        line_json(3, "100%\r"),
        line_json(4, "done"),
    ]
    portal.on(LOGS, page(bar))
    assert mportal("logs", "42").stdout.splitlines() == [
        "node 0 |   0%", "node 0 |  50%", "node 0 | 100%", "node 0 | done",
    ]  # fmt: skip


def test_a_progress_bar_on_a_terminal_is_drawn_over_behind_its_rank(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    printer = LogPrinter(many_ranks=True)
    texts = ["\r 1%", "\r 2%", "\r3%\x1b[2A"]
    lines = [
        LogLine(
            line=i,
            attempt=1,
            rank=0,
            stream="stdout",
            at=datetime.now(timezone.utc),
            text=text,
            more=True,
        )
        for i, text in enumerate(texts)
    ]
    printer.show(lines)
    printer.finish()
    begin = "\x1b[36mnode 0 | \x1b[0m"
    drawn = capsys.readouterr().out
    assert drawn == f"{begin} 1%\r\x1b[K{begin} 2%\r\x1b[K{begin}3%\n"


def test_the_log_so_far_is_read_page_by_page(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(ATTEMPTS, page([attempt_json(1)]))
    portal.on(
        LOGS,
        page([line_json(1, "a")], next="1:1"),
        page([], next="1:5"),
        page([line_json(6, "b")]),
    )
    result = mportal("logs", "42", "--rank", "0", "--attempt", "1")
    assert result.stdout == "a\nb\n"
    requested = [dict(request.url.params) for request in portal.seen(LOGS)]
    assert [params.get("after") for params in requested] == [None, "1:1", "1:5"]
    assert {params["rank"] for params in requested} == {"0"}


def test_the_tail_is_read_backwards(mportal, portal):
    portal.on(JOB, ok(job_json()))
    portal.on(LOGS, page([line_json(7, "g")], previous="1:7"), page([line_json(6, "f")]))
    assert mportal("logs", "42", "--tail", "5").stdout == "f\ng\n"
    assert [dict(r.url.params)["before"] for r in portal.seen(LOGS)] == ["end", "1:7"]


SEARCH = f"{LOGS}/search"


def test_grep_prints_what_matches_page_by_page_and_searches_on_the_portal(mportal, portal):
    portal.on(JOB, ok(ended_job(num_nodes=2)))
    portal.on(
        SEARCH,
        page([line_json(3, "loss is nan", rank=1, more=True)], next="1:5"),
        page([], next="1:9"),
        page([line_json(12, "nan again", rank=1)]),
    )
    result = mportal("logs", "42", "--grep", "na+n", "--rank", "1")
    assert (result.exit_code, result.stdout) == (0, "node 1 | loss is nan\nnode 1 | nan again\n")
    requested = [dict(request.url.params) for request in portal.seen(SEARCH)]
    assert [params.get("after") for params in requested] == [None, "1:5", "1:9"]
    assert requested[0] == {
        "q": "na+n", "regex": "true", "case": "true", "rank": "1", "limit": "1000",
    }  # fmt: skip


def test_grep_for_plain_text_in_any_case_since_a_while_with_its_last_lines(mportal, portal):
    portal.on(JOB, ok(ended_job()))
    portal.on(SEARCH, page([line_json(i, f"n {i}") for i in range(1, 5)], next="1:4"), page([]))
    result = mportal("logs", "42", "--grep", "n (", "-F", "-i", "--since", "10m", "--tail", "2")
    assert (result.exit_code, result.stdout) == (0, "n 3\nn 4\n")
    requested = dict(portal.seen(SEARCH)[0].url.params)
    ago = datetime.now(timezone.utc) - datetime.fromisoformat(requested.pop("since"))
    assert timedelta(minutes=10) <= ago < timedelta(hours=1)
    assert requested == {"q": "n (", "limit": "1000"}


def test_a_level_alone_is_a_search_too(mportal, portal):
    portal.on(JOB, ok(ended_job()))
    portal.on(SEARCH, page([line_json(7, "ValueError: x")]))
    result = mportal("logs", "42", "--level", "error")
    assert (result.exit_code, result.stdout) == (0, "ValueError: x\n")
    requested = dict(portal.seen(SEARCH)[0].url.params)
    assert requested["level"] == "error"
    assert "regex" not in requested


def test_grep_that_finds_nothing_exits_as_grep_does(mportal, portal):
    portal.on(JOB, ok(ended_job()))
    portal.on(SEARCH, page([]))
    result = mportal("logs", "42", "--grep", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "")
    assert mportal("logs", "42", "--since", "2026-03-01T12:00:00Z").exit_code == 1
    since = dict(portal.seen(SEARCH)[1].url.params)["since"]
    assert datetime.fromisoformat(since) == datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def test_a_pattern_that_is_none_is_a_mistake_with_its_place(mportal, portal):
    portal.on(JOB, ok(ended_job()))
    portal.on(SEARCH, lambda _: problem(400, "invalid_pattern", "missing ) at character 1"))
    result = mportal("logs", "42", "--grep", "(")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "missing ) at character 1" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-f", "--grep", "x"), "mportal logs -f 42 | grep PATTERN"),
        (("-f", "--level", "error"), "mportal logs -f 42 | grep PATTERN"),
        (("-f", "--since", "1h"), "mportal logs -f 42 | grep PATTERN"),
        (("-i",), "give --grep PATTERN too"),
        (("-F",), "give --grep PATTERN too"),
        (("--since", "soon"), "'soon' is neither a length"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_a_sentence(mportal, portal, options, words):
    result = mportal("logs", "42", *options)
    assert (result.exit_code, portal.requests) == (2, [])
    assert words in " ".join(result.stderr.split())


OWN = "Monarch internal logs are being written to /tmp/x.log; execution id x_1"


@pytest.mark.parametrize(
    ("arguments", "shown", "remark"),
    [
        ((), "a\nValueError: b\n", "2 lines of Monarch's own output are not shown. "),
        (("--all",), f"{OWN}\na\n{OWN}\nValueError: b\n", ""),
    ],
)
def test_lines_of_monarch_about_itself_are_left_out_unless_all_are_requested(
    mportal, portal, arguments, shown, remark
):
    portal.on(JOB, ok(ended_job()))
    texts = [OWN, "a", OWN, "ValueError: b"]
    portal.on(LOGS, page([line_json(i, text) for i, text in enumerate(texts, 1)]))
    result = mportal("logs", "42", *arguments)
    assert (result.exit_code, result.stdout) == (0, shown)
    assert result.stderr.startswith(remark)
    assert ("mportal logs --all 42" in result.stderr) == bool(remark)


def test_a_search_finds_lines_of_monarch_about_itself(mportal, portal):
    portal.on(JOB, ok(ended_job()))
    answer = {"results": [{**line_json(1, OWN), "spans": [[0, 7]]}], "next": None, "previous": None}
    portal.on(SEARCH, ok({**answer, "removed": "", "last": "1:1", "scanned_bytes": 9}))
    assert mportal("logs", "42", "--grep", "Monarch").stdout == f"{OWN}\n"
