"""Frames that the portal fetched itself: which parts of a batch are retried one by one."""

from __future__ import annotations

import json
import logging

import pytest
from django.utils import timezone

from jobs.actions.ingest.store_frames import store_batch
from jobs.logs.cursor import START
from jobs.models import Cluster
from jobs.readers.job_log import log_after
from jobs.statuses import ClusterStatus
from tests.factories import make_attempt
from tests.frame_bytes import lines

pytestmark = pytest.mark.django_db


def as_bytes(last: int) -> list[bytes]:
    return [json.dumps(each).encode() for each in lines(1, last)]


def warnings(caplog) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


def test_an_attempt_that_is_over_refuses_a_batch_once_and_not_every_frame_of_it(caplog):
    attempt = make_attempt(ended_at=timezone.now())
    Cluster.objects.update(status=ClusterStatus.GONE)
    store_batch(attempt, as_bytes(50))
    assert len(warnings(caplog)) == 1


def test_a_frame_cut_in_half_costs_itself_alone(caplog):
    attempt = make_attempt()
    batch = as_bytes(3)
    store_batch(attempt, [*batch[:2], batch[1][:20], batch[2]])
    page = log_after(attempt.job_id, START, 100)
    assert [line.text for line in page.lines] == ["r0 s1", "r0 s2", "r0 s3"]
    assert len(warnings(caplog)) == 1
