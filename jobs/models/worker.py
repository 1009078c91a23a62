"""One host of an attempt, as its runner reports it."""

from django.db import models

from jobs.models.attempt import Attempt
from jobs.statuses import WorkerStatus


class Worker(models.Model):
    """Rank `rank` of an attempt. `exit_code` is that of its own command, exactly."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="workers")
    rank = models.PositiveIntegerField()
    mesh = models.CharField(max_length=60, blank=True)
    # What the node calls itself; on Slurm that is the name by which it can be avoided.
    host = models.CharField(max_length=100, blank=True, default="", db_default="")
    address = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=12, choices=WorkerStatus, default=WorkerStatus.PENDING)
    python = models.CharField(max_length=20, blank=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["attempt", "rank"], name="one_worker_per_rank"),
        )

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.attempt}"
