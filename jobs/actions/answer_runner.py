"""What a runner that pushes is told besides what is stored: whether it is to end."""

from __future__ import annotations

from jobs.models import Attempt
from jobs.statuses import Carrier, JobStatus

# How long users' programs may take to end, in seconds, whoever asks them to.
GRACE_S = 10.0


def answer_runner(attempt_id: int) -> float | None:
    """Note that this attempt pushes. The grace with which it is to end; None: it goes on.

    The attempt exists, and its token has been checked.
    """
    attempt = Attempt.objects.select_related("job").get(pk=attempt_id)
    if attempt.carrier != Carrier.PUSH:
        Attempt.objects.filter(pk=attempt_id).update(carrier=Carrier.PUSH)
    is_stopping = attempt.job.status == JobStatus.STOPPING and attempt.ended_at is None
    return GRACE_S if is_stopping else None
