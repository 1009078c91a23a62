"""Starting a new attempt of a job: its rows, and the move to PROVISIONING."""

from __future__ import annotations

import secrets

from django.db import transaction
from django.db.models import Max

from jobs import clock
from jobs.attempt_tokens import attempt_token_digest
from jobs.lifecycle import move
from jobs.models import Attempt, AttemptStage, Cluster, Installation, Job, LogHead
from jobs.statuses import JobStatus, StageName
from jobs.wakeups import wake_on_commit
from monarch_client.runner.crash_points import reach


@transaction.atomic
def start_attempt(job: Job) -> Attempt:
    """The next attempt of `job`, on a cluster of its own, not yet launched.

    StaleJobError when the job was moved meanwhile; then nothing is made.
    """
    number = (job.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
    cluster = Cluster.objects.create(
        project=job.project,
        name=_new_name(job, number),
        backend_name=job.backend_name,
        num_nodes=job.num_nodes,
    )
    attempt = Attempt.objects.create(
        job=job,
        number=number,
        cluster=cluster,
        token_digest=attempt_token_digest(job.pk, number),
    )
    LogHead.objects.create(attempt=attempt)
    AttemptStage.objects.create(attempt=attempt, name=StageName.LAUNCH, started_at=clock.now())
    move(job, JobStatus.PROVISIONING, attempt=attempt)
    transaction.on_commit(lambda: reach("plan.started"))
    wake_on_commit("provisioning", job.pk)
    return attempt


def _new_name(job: Job, number: int) -> str:
    """Never used before, and kept in the row: a launch that is repeated uses it again.

    Without the random part a database restored from a backup would give names a second time.
    """
    return f"mp{Installation.current().key}-{secrets.token_hex(3)}-{job.pk}-{number}"
