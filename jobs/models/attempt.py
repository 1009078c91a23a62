"""Attempts: the runs of a job. Each owns a log, workers and a cost, and refers to a cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models

from jobs.ground import clock
from jobs.models.cluster import Cluster
from jobs.models.job import Job
from jobs.statuses import Carrier, ClusterStatus, JobStatus, StopReason

CRASH_CHARS = 200


class AttemptQuerySet(models.QuerySet["Attempt"]):
    """Attempts by state."""

    def open(self) -> Self:
        """Return the attempts that have not ended."""
        return self.filter(ended_at=None)

    def newest(self) -> Attempt | None:
        """Return the attempt with the highest number, among those of one job."""
        return self.order_by("-number").first()

    def newest_of(self, job_id: int, *statuses: JobStatus) -> Attempt | None:
        """Return the last attempt of a job in one of `statuses`, with job, project and cluster."""
        mine = self.filter(job=job_id, job__status__in=statuses)
        return mine.select_related("job__project", "cluster").newest()


class Attempt(models.Model):
    """One run of a job, numbered from 1. `ended_at` is set once, together with the verdict."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="attempts", null=True, blank=True
    )
    # Digest of the token with which this attempt's runner signs in; the token is not stored.
    token_digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    # Times of the first frame from the runner, and of the begin of `run`.
    contacted_at = models.DateTimeField(null=True, blank=True)
    run_started_at = models.DateTimeField(null=True, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    stop_reason = models.CharField(max_length=20, choices=StopReason, blank=True)
    message = models.TextField(blank=True)
    hint = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    # Identifies a crash on a live host by its kind, process and stage; "" if there was none.
    crash = models.CharField(max_length=CRASH_CHARS, blank=True, default="", db_default="")
    # Pushed by the runner or pulled by the follower; unknown at first.
    carrier = models.CharField(max_length=4, choices=Carrier, blank=True)
    # Its share of what its cluster has cost, US$.
    usd = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    # The known failure that was recognized: {"code", "title", "evidence", "fix"}; else empty.
    diagnosis = models.JSONField(default=dict, blank=True)

    objects = AttemptQuerySet.as_manager()

    class Meta:
        # What had machines lately, for the timeline of the queue.
        indexes = (models.Index(fields=["ended_at"], name="attempt_by_end"),)
        constraints = (
            models.UniqueConstraint(fields=["job", "number"], name="one_attempt_per_number"),
            # At most one running incarnation: a second open attempt is refused by the database.
            models.UniqueConstraint(
                fields=["job"], condition=models.Q(ended_at=None), name="one_open_attempt"
            ),
        )

    def __str__(self) -> str:
        return f"{self.job} attempt {self.number}"

    def repeats(self) -> int | None:
        """Return the number of the last attempt that crashed before, if it crashed the same way."""
        if not self.crash:
            return None
        earlier = Attempt.objects.filter(job=self.job_id, number__lt=self.number)
        last = earlier.exclude(crash="").newest()
        return last.number if last is not None and last.crash == self.crash else None

    @property
    def takes_frames(self) -> bool:
        """Whether the portal accepts frames: until the end of both the attempt and its cluster."""
        return takes_frames(self.ended_at, self.cluster.status if self.cluster else None)


def takes_frames(ended_at: datetime | None, cluster_status: str | None) -> bool:
    """Whether the portal accepts frames of an attempt with this end and status of its cluster."""
    return ended_at is None or cluster_status not in {None, ClusterStatus.GONE}
