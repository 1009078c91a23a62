"""An attempt whose node holds a verdict is not taken for lost, wherever its frames went."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.backends.base import Leftovers
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.logs.cursor import START
from jobs.readers.job_log import log_after
from jobs.statuses import Carrier, JobStatus
from tests.integration.reconcilers.steps import status_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_either", [False, True])
def test_a_verdict_on_the_node_ends_the_attempt_and_nothing_runs_again(
    fake, tick, submitted, time_machine, monkeypatch, is_either
):
    """Acknowledge frames 1 to 80 from a process that was not the portal."""
    end = {"rank": 0, "seq": 81, "t": 1.0, "kind": "end", "reason": "COMPLETED", "exit_code": 0}
    left = Leftovers([json.dumps(end).encode() + b"\n"])
    monkeypatch.setattr(FakeBackend, "leftovers", lambda *_args, **_options: left)
    fake.set_plan(FakePlan(run_s=1))
    if is_either:
        fake.be_either()
    tick()
    # As on SkyPilot: where frames are pushed or printed, this attempt's were pushed.
    submitted.attempts.update(carrier=Carrier.PUSH)
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    tick()
    assert status_of(submitted) == JobStatus.SUCCEEDED
    assert submitted.attempts.get().exit_code == 0
    (gap,) = [line.text for line in log_after(submitted.pk, START, 100).lines]
    assert "80 messages of rank 0 are missing here" in gap
