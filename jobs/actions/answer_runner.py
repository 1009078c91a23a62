"""What a runner that pushes is told besides what is stored: whether it is to end."""

from __future__ import annotations

from jobs.models import Attempt
from jobs.statuses import Carrier, JobStatus
from monarch_client.runner.crash_points import reach

# How long users' programs may take to end, in seconds, whoever asks them to.
GRACE_S = 10.0


def answer_runner(attempt_id: int) -> float | None:
    """Note that this attempt pushes. The grace with which it is to end; None: it goes on.

    The attempt exists, and its token has been checked.
    """
    attempts = Attempt.objects.filter(pk=attempt_id)
    carrier, ended_at, status = attempts.values_list("carrier", "ended_at", "job__status").get()
    if carrier != Carrier.PUSH:
        attempts.update(carrier=Carrier.PUSH)
    if status != JobStatus.STOPPING or ended_at is not None:
        return None
    reach("stop.answering")
    return GRACE_S
