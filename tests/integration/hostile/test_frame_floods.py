"""A dishonest runner in bulk: requests full of reports, gaps or nonsense cost a bounded amount."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import LogHead
from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES
from tests.frame_bytes import body, frame
from tests.integration.api.conftest import assert_problem
from tests.integration.hostile.runners import post

pytestmark = pytest.mark.django_db


_MANY = {
    "stages": [{"kind": "stage", "stage": "run", "phase": phase} for phase in ("begin", "end")],
    "ends": [{"kind": "end", "reason": "COMPLETED", "message": "x"}],
    "workers": [{"kind": "worker", "status": status} for status in ("READY", "LOST")],
    "exits": [{"kind": "exit", "exit_code": code} for code in (0, 1)],
}


@pytest.mark.parametrize("name", _MANY)
def test_a_request_full_of_reports_costs_no_more_than_a_few_statements(attempt, name) -> None:
    kinds = _MANY[name]
    frames = [frame(seq, **kinds[seq % len(kinds)]) for seq in range(1, 9001)]
    raw = body(*frames)
    assert len(raw) < MAX_BODY_BYTES
    began = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        assert post(attempt, raw).status_code == 200
    assert len(queries) < 60, len(queries)
    assert time.process_time() - began < 5


def test_a_request_full_of_gaps_is_bounded(attempt) -> None:
    frames = [frame(seq * 1000, rank=seq % 2, text="") for seq in range(1, 9001)]
    tracemalloc.start()
    began = time.process_time()
    assert post(attempt, body(*frames)).status_code == 200
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert spent < 10
    assert peak < 64 * 1024**2
    assert LogHead.objects.get(pk=attempt.pk).next_line == 18_001


def test_the_most_that_one_request_stores_is_bounded_packed_or_not(attempt) -> None:
    raw = body(*(frame(seq, text="x" * 60_000 + "y") for seq in range(1, 19)))
    assert_problem(post(attempt, raw), 413, "body_too_large")
    packed = gzip.compress(raw)
    assert len(packed) < 20_000
    refused = post(attempt, packed, **{"Content-Encoding": "gzip"})
    assert_problem(refused, 413, "body_too_large")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"rank":' + b"9" * 5000 + b"}",
        b'{"rank":0,"seq":1e400,"t":1,"kind":"line"}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"rank":0,"rank":1,"seq":1,"t":1,"kind":"line","stream":"stdout","text":"\xff"}',
        b"\x00" * 1000,
        b"\n" * 500_000 + b"{",
        json.dumps({"rank": 0, "seq": 1, "t": 1, "kind": {"a": []}}).encode(),
    ],
)
def test_what_is_no_frame_is_refused_quickly(attempt, raw) -> None:
    began = time.process_time()
    assert_problem(post(attempt, raw), 400, "invalid_frame")
    assert time.process_time() - began < 3
