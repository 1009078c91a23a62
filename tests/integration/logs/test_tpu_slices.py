"""Ranks of a job whose nodes are TPU slices: one for each host."""

from __future__ import annotations

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.errors import InvalidFrameError
from jobs.logs.reading import read_lines
from tests.factories import make_attempt, make_job, make_spec
from tests.frame_bytes import body, frame

pytestmark = pytest.mark.django_db


def test_every_host_of_each_slice_has_a_rank() -> None:
    spec = make_spec(num_nodes=2, resources={"accelerators": "tpu-v4-32:1"})
    attempt = make_attempt(make_job(status="RUNNING", num_nodes=2, spec=spec))
    token = attempt_token(attempt.job_id, attempt.number)
    assert attempt.job.num_hosts == 8
    ingest_frames(attempt.pk, token, body(*(frame(1, rank=rank) for rank in range(8))))
    assert [line.rank for line in read_lines(attempt.pk)] == [*range(8)]
    with pytest.raises(InvalidFrameError, match="not one of the job's 8"):
        ingest_frames(attempt.pk, token, body(frame(1, rank=8)))
