"""The endpoint of the runners: permissions, size limits, and the meaning of answers."""

from __future__ import annotations

import gzip
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.logs.reading import read_lines
from jobs.models import Attempt, Job
from jobs.statuses import ClusterStatus
from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES
from monarch_client.wire.attempts import FramesAnswer, StopOrder
from tests.factories import make_attempt, make_job, make_member, make_token
from tests.frame_bytes import body, frame, lines
from tests.integration.api.conftest import assert_problem


@pytest.fixture
def attempt(db: None) -> Attempt:
    return make_attempt(make_job(status="RUNNING"))


@pytest.fixture
def send(client, attempt):
    """POST bytes with the attempt's token, or with another one."""

    def call(raw: bytes, *, token: str | None = None, **headers: str) -> Any:
        if token is None:
            token = attempt_token(attempt.job_id, attempt.number)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return client.post(
            f"/api/v1/attempts/{attempt.pk}/frames",
            raw,
            content_type="application/x-ndjson",
            headers=headers,
        )

    return call


def test_frames_are_acknowledged_by_rank(send, attempt) -> None:
    answer = send(body(*lines(1, 3)))
    assert (answer.status_code, answer.json()) == (200, {"acked": {"0": 3}})
    assert send(b"").json() == {"acked": {"0": 3}}
    assert len(read_lines(attempt.pk)) == 3


def test_a_runner_whose_job_is_stopping_is_requested_to_end(send, attempt) -> None:
    assert "stop" not in send(body(frame(1))).json()
    Job.objects.filter(pk=attempt.job_id).update(status="STOPPING")
    answer = send(b"").json()
    assert answer == {"acked": {"0": 1}, "stop": {"grace_s": 10.0}}
    assert msgspec.convert(answer, FramesAnswer).stop == StopOrder(grace_s=10.0)
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=clock.now())
    assert "stop" not in send(b"").json()


@pytest.mark.parametrize("known", ["", "pull"])
def test_the_first_contact_says_that_an_attempt_pushes(send, attempt, known) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(carrier=known)
    send(b"")
    attempt.refresh_from_db()
    assert attempt.carrier == "push"


def test_a_batch_of_lines_costs_three_statements(send, attempt) -> None:
    """Count three: the sender's check, the log's lock and one store; every log pays for each."""
    send(body(*lines(1, 3)))
    # Nor does each batch note that its runner lives.
    Attempt.objects.filter(pk=attempt.pk).update(last_seen_at=clock.now() + timedelta(hours=1))
    with CaptureQueriesContext(connection) as queries:
        assert send(body(*lines(4, 5000))).json() == {"acked": {"0": 5000}}
    requested = [each["sql"] for each in queries if "SAVEPOINT" not in each["sql"]]
    assert len(requested) == 3, [each[:200] for each in requested]


def test_a_runner_gets_the_order_to_end_while_it_posts_reports_and_not_after_its_end(
    send, attempt
) -> None:
    send(b"")
    Job.objects.filter(pk=attempt.job_id).update(status="STOPPING")
    end = frame(1, "end", reason="CANCELLED_BY_USER")
    assert send(body(end)).json() == {"acked": {"0": 1}}


def test_frames_may_come_gzipped(send, attempt) -> None:
    answer = send(gzip.compress(body(*lines(1, 3))), **{"Content-Encoding": "gzip"})
    assert answer.json() == {"acked": {"0": 3}}


@pytest.mark.parametrize(
    "raw", [b"not gzip", gzip.compress(body(frame(1)))[:-9], b""], ids=["text", "torn", "empty"]
)
def test_a_body_that_is_not_gzip_although_it_says_so_is_refused(send, raw) -> None:
    assert_problem(send(raw, **{"Content-Encoding": "gzip"}), 400, "invalid_frame")


def test_a_body_over_the_bound_is_refused_packed_or_not(send) -> None:
    huge = b" " * (MAX_BODY_BYTES + 1)
    assert_problem(send(huge), 413, "body_too_large")
    bomb = gzip.compress(b" " * (64 * MAX_BODY_BYTES))
    assert len(bomb) < MAX_BODY_BYTES
    assert_problem(send(bomb, **{"Content-Encoding": "gzip"}), 413, "body_too_large")


def test_a_frame_that_is_not_sound_is_named(send) -> None:
    problem = assert_problem(send(body(frame(1), {**frame(2), "seq": 0})), 400, "invalid_frame")
    assert problem["detail"].startswith("Frame 2")


def test_without_a_token_or_with_a_users_it_is_refused(send, attempt) -> None:
    assert_problem(send(b"", token=""), 401, "not_authenticated")
    _, secret = make_token(make_member(attempt.job.project))
    assert_problem(send(body(frame(1)), token=secret), 403, "permission_denied")
    assert read_lines(attempt.pk) == []


def test_an_attempt_that_is_over_or_unknown_wants_nothing_more(send, attempt) -> None:
    send(body(frame(1, "end", reason="COMPLETED")))
    attempt.cluster.status = ClusterStatus.GONE
    attempt.cluster.save()
    assert_problem(send(b""), 410, "attempt_closed")
    Attempt.objects.filter(pk=attempt.pk).delete()
    assert_problem(send(b""), 404, "not_found")


def test_only_posting_is_possible(client, attempt) -> None:
    assert client.get(f"/api/v1/attempts/{attempt.pk}/frames").status_code == 405
