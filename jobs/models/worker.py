"""Workers of attempts, as their runners report them."""

from django.db import models

from jobs.models.attempt import Attempt
from jobs.statuses import WorkerStatus


class Worker(models.Model):
    """The worker of one rank. `exit_code` is that of its own command."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="workers")
    rank = models.PositiveIntegerField()
    mesh = models.CharField(max_length=60, blank=True)
    # The name that the node reports; on Slurm nodes are avoided by it.
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
