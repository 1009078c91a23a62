"""Following a job: every line once and in order, whatever happens to the connection."""

from __future__ import annotations

import httpx
import pytest

from monarch_client.errors import MissingError
from monarch_client.rest.server_sent import read_events
from monarch_client.rest.stream import Changed, Disconnected, Follower, NewLines
from tests.unit.rest.fake_portal import (
    FakePortal,
    ended_job,
    event,
    job_json,
    line_json,
    ok,
    page,
    problem,
    stream,
)

STREAM = "GET /projects/rl/jobs/42/logs/stream"
LOGS = "GET /projects/rl/jobs/42/logs"
JOB = "GET /projects/rl/jobs/42"


@pytest.fixture
def portal():
    return FakePortal()


def lines(*numbers, attempt=1):
    rows = [line_json(number, f"line {number}", attempt=attempt) for number in numbers]
    return event("line", rows, f"{attempt}:{numbers[-1]}")


def follow(portal, **options):
    return list(Follower(portal.client(), "rl", 42, **options).events())


def texts(events):
    return [line.text for e in events if isinstance(e, NewLines) for line in e.lines]


def test_lines_come_in_order_until_the_end(portal):
    portal.on(STREAM, stream(event("job"), lines(1, 2), b": beat\n\n", lines(3), event("end")))
    events = follow(portal)
    assert texts(events) == ["line 1", "line 2", "line 3"]
    assert isinstance(events[0], Changed)
    assert isinstance(events[-1], Changed)


def test_a_broken_stream_is_resumed_at_the_last_line_seen(portal):
    broken = stream(lines(1, 2), httpx.ReadError("reset"))
    portal.on(STREAM, broken, stream(lines(3), event("end")))
    events = follow(portal)
    assert texts(events) == ["line 1", "line 2", "line 3"]
    assert "Last-Event-ID" not in portal.requests[0].headers
    assert portal.requests[1].headers["Last-Event-ID"] == "1:2"
    assert [e.reason for e in events if isinstance(e, Disconnected)] == ["reset"]


def test_lines_that_come_again_are_dropped(portal):
    portal.on(STREAM, stream(lines(1, 2)), stream(lines(1, 2, 3), lines(4), event("end")))
    assert texts(follow(portal)) == ["line 1", "line 2", "line 3", "line 4"]


def test_an_event_cut_off_in_the_middle_counts_only_when_it_comes_whole(portal):
    whole = lines(1)
    portal.on(STREAM, stream(whole[:-10]), stream(whole, event("end")))
    assert texts(follow(portal)) == ["line 1"]
    assert "Last-Event-ID" not in portal.requests[1].headers


def test_lines_of_a_second_attempt_follow_those_of_the_first(portal):
    portal.on(STREAM, stream(lines(7)), stream(lines(1, attempt=2), event("end")))
    assert texts(follow(portal)) == ["line 7", "line 1"]


def test_a_choice_and_a_tail_are_the_portals_business(portal):
    portal.on(STREAM, stream(lines(4)), stream(lines(5), event("end")))
    assert texts(follow(portal, tail=1, choice={"rank": 0, "stream": None})) == ["line 4", "line 5"]
    requested = [dict(request.url.params) for request in portal.seen(STREAM)]
    assert requested == [{"tail": "1", "rank": "0"}] * 2


def test_a_portal_that_restarts_is_waited_for_however_long_it_takes(portal):
    away = [httpx.ConnectError("refused")] * 20
    portal.on(STREAM, stream(lines(1)), *away, httpx.Response(502), stream(event("end")))
    assert texts(follow(portal)) == ["line 1"]
    assert 3.75 <= max(portal.pauses) <= 5.0


def test_where_no_stream_gets_through_the_log_is_polled(portal):
    swallowed = stream(httpx.ReadTimeout("silence"))
    portal.on(STREAM, swallowed)
    portal.on(JOB, ok(job_json()), ok(ended_job()))
    portal.on(LOGS, page([line_json(1, "a")], next="1:5"), page([]), page([line_json(6, "b")]))
    assert texts(follow(portal)) == ["a", "b"]
    assert len(portal.seen(STREAM)) == 3
    assert [dict(r.url.params).get("after") for r in portal.seen(LOGS)] == [None, "1:5", "1:1"]


def test_a_polled_log_begins_at_its_tail_as_well(portal):
    portal.on(STREAM, stream(httpx.ReadTimeout("silence")))
    portal.on(JOB, ok(ended_job()))
    portal.on(LOGS, page([line_json(7, "g"), line_json(8, "h")], previous="1:7"), page([]))
    assert texts(follow(portal, tail=2)) == ["g", "h"]
    assert [dict(r.url.params) for r in portal.seen(LOGS)] == [
        {"before": "end", "limit": "2"},
        {"after": "1:8", "limit": "1000"},
    ]


@pytest.mark.parametrize(("status", "code"), [(429, "too_many_streams"), (503, "portal_busy")])
def test_where_there_is_no_place_for_a_stream_the_log_is_polled(portal, status, code):
    portal.on(STREAM, problem(status, code))
    portal.on(JOB, ok(ended_job()))
    portal.on(LOGS, page([line_json(1, "a")]))
    assert texts(follow(portal)) == ["a"]
    assert len(portal.seen(STREAM)) == 3


def test_a_job_that_does_not_exist_is_an_error_at_once(portal):
    portal.on(STREAM, problem(404, "not_found", "There is no job 42."))
    with pytest.raises(MissingError):
        follow(portal)


def test_events_are_read_as_the_standard_says():
    body = ": comment\r\nid: 7\r\nevent: line\r\ndata: a\r\ndata:b\u2028c\r\n\r\nid\ndata\n\n"
    chunks = [bytes([byte]) for byte in (body + "data: lost").encode()]
    events = list(read_events(chunks))
    assert [(e.event, e.data, e.id) for e in events] == [
        ("line", "a\nb\u2028c", "7"),
        ("message", "", ""),
    ]
