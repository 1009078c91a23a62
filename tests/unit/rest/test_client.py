"""PortalClient: what it sends, what it repeats, and what it raises."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import httpx
import pytest

from monarch_client.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecErrors,
    MissingError,
    NotSignedInError,
    RefusedError,
    UnexpectedAnswerError,
    UnreachableError,
)
from monarch_client.rest.client import PortalClient
from tests.unit.rest.fake_portal import (
    MOMENT,
    FakePortal,
    attempt_json,
    job_json,
    ok,
    page,
    problem,
)

JOBS = "/projects/rl/jobs"


@pytest.fixture
def portal():
    return FakePortal()


def test_every_request_carries_the_token_and_the_version(portal):
    portal.on("GET /me", ok({"username": "alice", "is_admin": False, "projects": []}))
    portal.client().me()
    assert portal.requests[0].headers["Authorization"] == "Bearer mpt_x"
    assert portal.requests[0].headers["User-Agent"].startswith("mportal/")


def test_a_job_comes_with_moments_in_utc(portal):
    portal.on(f"GET {JOBS}/42", ok(job_json(started_at="2026-03-01T12:00:00.5Z")))
    job = portal.client().job("rl", 42)
    assert job.created_at == datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    assert job.started_at is not None
    assert job.ended_at is None


def test_keys_of_a_newer_portal_are_ignored(portal):
    portal.on(f"GET {JOBS}/42", ok(job_json(mood="sunny")))
    assert portal.client().job("rl", 42).name == "hello"


def test_a_missing_key_says_which_one(portal):
    job = job_json()
    del job["status"]
    portal.on(f"GET {JOBS}/42", ok(job))
    with pytest.raises(UnexpectedAnswerError, match="status"):
        portal.client().job("rl", 42)


def test_filters_that_are_not_given_are_not_sent(portal):
    portal.on(f"GET {JOBS}", page([job_json()]))
    portal.client().jobs("rl", status=("RUNNING", "QUEUED"), user="me", q="", cursor=None)
    assert dict(portal.requests[0].url.params) == {"status": "RUNNING,QUEUED", "user": "me"}


def test_yaml_is_sent_as_the_text_it_is(portal):
    portal.on(f"POST {JOBS}", ok(job_json(), 201))
    portal.client().submit("rl", "run: echo ü\n")
    assert portal.requests[0].headers["Content-Type"] == "application/yaml"
    assert portal.requests[0].content.decode() == "run: echo ü\n"


def test_an_object_is_sent_as_json(portal):
    portal.on(f"POST {JOBS}", ok(job_json(), 201))
    portal.client().submit("rl", {"run": "true"})
    assert json.loads(portal.requests[0].content) == {"spec": {"run": "true"}}


def test_a_submit_that_is_repeated_keeps_its_idempotency_key(portal):
    portal.on(f"POST {JOBS}", httpx.ReadError("reset"), httpx.Response(502), ok(job_json(), 201))
    portal.client().submit("rl", "run: true")
    keys = {request.headers["Idempotency-Key"] for request in portal.requests}
    assert len(portal.requests) == 3
    assert len(keys) == 1


def test_two_submits_have_two_keys(portal):
    portal.on(f"POST {JOBS}", ok(job_json(), 201))
    client = portal.client()
    client.submit("rl", "run: true")
    client.submit("rl", "run: true")
    first, second = (request.headers["Idempotency-Key"] for request in portal.requests)
    assert first != second


def test_a_rerun_whose_answer_was_lost_is_repeated_with_the_same_key(portal):
    path = f"POST {JOBS}/42/actions/rerun"
    portal.on(path, httpx.ReadError("reset"), ok(job_json(id=43), 201))
    assert portal.client().rerun("rl", 42).id == 43
    first, second = (request.headers["Idempotency-Key"] for request in portal.requests)
    assert first == second


def test_a_rerun_that_never_left_is_repeated(portal):
    portal.on(
        f"POST {JOBS}/42/actions/rerun", httpx.ConnectError("refused"), ok(job_json(id=43), 201)
    )
    assert portal.client().rerun("rl", 42).id == 43


def test_pauses_between_tries_grow(portal):
    portal.on("GET /projects", *[httpx.ConnectError("refused")] * 4, page([]))
    portal.client().projects()
    assert portal.pauses == sorted(portal.pauses)
    assert (len(portal.pauses), 1.2 <= portal.pauses[-1] <= 1.6) == (4, True)


def test_a_portal_that_stays_away_is_given_up_on(portal):
    portal.on("GET /me", httpx.ConnectError("connection refused"))
    with pytest.raises(UnreachableError, match=r"http://portal: connection refused"):
        portal.client(patience_s=0).me()


def test_an_address_that_is_none_is_not_tried_twice(portal):
    portal.on("GET /me", httpx.UnsupportedProtocol("The address lacks http://."))
    with pytest.raises(UnreachableError, match=r"The address lacks http://\.$"):
        portal.client().me()
    assert len(portal.requests) == 1


def test_a_portal_whose_database_is_away_is_retried(portal):
    away = problem(503, "database_unavailable")
    away.headers["Retry-After"] = "2"
    portal.on("GET /projects", away, page([]))
    portal.client().projects()
    assert len(portal.requests) == 2


def test_an_error_of_the_portals_own_is_not_repeated(portal):
    portal.on(f"GET {JOBS}/42", problem(503, "backend_unavailable"))
    with pytest.raises(RefusedError) as caught:
        portal.client().job("rl", 42)
    assert caught.value.portal_code == "backend_unavailable"
    assert len(portal.requests) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "not_authenticated", NotSignedInError),
        (403, "permission_denied", ForbiddenError),
        (404, "not_found", MissingError),
        (409, "job_already_final", ConflictError),
        (422, "idempotency_conflict", RefusedError),
        (500, "internal_error", RefusedError),
    ],
)
def test_a_problem_becomes_an_exception_by_its_code(portal, status, code, kind):
    portal.on(f"GET {JOBS}/42", problem(status, code, "What to do."))
    with pytest.raises(kind, match="What to do"):
        portal.client().job("rl", 42)


def test_errors_of_a_specification_come_all_at_once(portal):
    rows = [
        {"path": "nam", "line": 1, "code": "unknown_key", "message": "m", "suggestion": "name"},
        {"path": "run", "line": None, "code": "missing", "message": "n", "suggestion": None},
    ]
    portal.on(f"POST {JOBS}", problem(422, "invalid_spec", errors=rows))
    with pytest.raises(InvalidSpecErrors) as caught:
        portal.client().submit("rl", "nam: x")
    assert [(e.path, e.line, e.suggestion) for e in caught.value.errors] == [
        ("nam", 1, "name"),
        ("run", None, None),
    ]


def test_something_that_is_no_portal_is_reported_as_such(portal):
    portal.on("GET /me", httpx.Response(200, text="<html>Welcome to nginx</html>"))
    with pytest.raises(UnexpectedAnswerError, match="is this the portal's address"):
        portal.client().me()
    portal.on("GET /me", httpx.Response(404, text="nothing"))
    with pytest.raises(UnexpectedAnswerError, match="404"):
        portal.client().me()


def test_an_upload_that_is_repeated_is_sent_whole_again(portal, tmp_path):
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(b"x" * 200_000)
    answer = {
        "reference": "upload:ab",
        "digest": "ab",
        "size_bytes": 1,
        "file_count": 1,
        "created_at": MOMENT,
    }
    portal.on("POST /projects/rl/uploads", httpx.ReadError("reset"), ok(answer, 201))
    assert portal.client().upload("rl", archive).reference == "upload:ab"
    assert [len(request.content) for request in portal.requests] == [200_000, 200_000]


def test_an_upload_the_portal_lacks_is_no_error(portal):
    assert portal.client().has_upload("rl", "ab") is False
    portal.on("GET /projects/rl/uploads/ab", ok({}))
    assert portal.client().has_upload("rl", "ab") is True


def test_attempts_come_with_stages_and_workers(portal):
    worker = {
        "rank": 1, "mesh": "m", "address": "a", "status": "READY", "python": "3.11", "pid": 7,
        "exit_code": None, "detail": "", "ready_at": "2026-03-01T12:00:00Z", "ended_at": None,
    }  # fmt: skip
    portal.on(f"GET {JOBS}/42/attempts", page([attempt_json(workers=[worker])]))
    (attempt,) = portal.client().attempts("rl", 42)
    assert attempt.workers[0].ready_at == datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.mark.feature("S2.6")
def test_a_jobs_program_finds_its_portal_in_the_environment(portal, monkeypatch):
    portal.on("GET /projects/rl/jobs/42", ok(job_json(parent=7, parent_attempt=2)))
    monkeypatch.setenv("MPORTAL_URL", "http://portal")
    monkeypatch.setenv("MPORTAL_TOKEN", "mpj_1_x")
    with PortalClient.from_environment(**portal.options()) as client:
        job = client.job("rl", 42)
    assert (job.parent, job.parent_attempt) == (7, 2)
    assert portal.requests[0].headers["Authorization"] == "Bearer mpj_1_x"
    monkeypatch.setenv("MPORTAL_TOKEN", "")
    with pytest.raises(NotSignedInError, match="MPORTAL_TOKEN"):
        PortalClient.from_environment()


@pytest.mark.feature("S2.6")
def test_a_job_that_does_not_reach_its_portal_learns_why(portal, monkeypatch):
    portal.on("GET /me", *[httpx.ConnectError("refused")])
    reported = "only where its nodes reach the portal"
    for in_a_job in (False, True):
        if in_a_job:
            monkeypatch.setenv("MPORTAL_JOB_ID", "7")
        with pytest.raises(UnreachableError) as caught, portal.client(patience_s=0) as client:
            client.me()
        assert (reported in str(caught.value)) == in_a_job
