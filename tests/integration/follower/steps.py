"""Steps of tests of followers."""

from __future__ import annotations

from jobs.logs.cursor import START
from jobs.models import Attempt, Job
from jobs.readers.job_log import log_after
from jobs.reconcilers import provisioning, queue

LINES = tuple(f"step {number}" for number in range(20))


def launched(job: Job) -> Attempt:
    queue.run_pass()
    provisioning.step(job.pk)
    return job.attempts.select_related("cluster").get()


def texts(attempt: Attempt) -> list[str]:
    return [line.text for line in log_after(attempt.job_id, START, 1000).lines]
