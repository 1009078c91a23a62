"""Starting a new attempt of a job: its rows, and the move to PROVISIONING."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from jobs.attempt_tokens import attempt_token_digest
from jobs.lifecycle import move
from jobs.models import Attempt, AttemptStage, Cluster, Installation, Job, LogHead
from jobs.statuses import JobStatus, StageName
from jobs.wakeups import wake_on_commit


@transaction.atomic
def start_attempt(job: Job) -> Attempt:
    """The next attempt of `job`, on a cluster of its own, not yet launched.

    StaleJobError when the job was moved meanwhile; then nothing is made.
    """
    number = (job.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
    cluster = Cluster.objects.create(
        project=job.project,
        # Unique for good, and the same however often this step is repeated.
        name=f"mp{Installation.current().key}-{job.pk}-{number}",
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
    AttemptStage.objects.create(attempt=attempt, name=StageName.LAUNCH, started_at=timezone.now())
    move(job, JobStatus.PROVISIONING, attempt=attempt)
    wake_on_commit("provisioning", job.pk)
    return attempt
