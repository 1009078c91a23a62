"""The probable start of a waiting job."""

from __future__ import annotations

import pytest

from jobs.scheduling.estimate import expected_start
from jobs.scheduling.limits import Limit, LimitKind
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot
from tests.unit.scheduling.shapes import machines, shape

pytestmark = pytest.mark.feature("P5.5")


def test_the_end_of_machines_without_a_job_gives_back_no_quota():
    # Job 5 has all of the quota; the cluster that job 6 left no longer counts in it.
    asks = shape(1, limits=("project:1",))
    quota = Limit(LimitKind.PROJECT, "1", {"jobs": 1.0}, {"jobs": 1.0})
    running = (RunningJob(5, asks), RunningJob(6, asks, counts_in_quotas=False))
    waiting = QueuedJob(9, asks)
    limits = {"project:1": quota, **machines(local=9, used=2)}
    found = expected_start(waiting, [], Snapshot((waiting,), running, limits), {5: 900.0, 6: 60.0})
    assert found == 900.0
