"""Metrics of hosts: processor, memory and GPUs, with the latest sample and a history."""

from django.db import models

from jobs.models.attempt import Attempt


class HostMetrics(models.Model):
    """The metrics of one rank. `history`, then `recent` hold points of `jobs.policies.series`.

    `history` is long: it is rewritten when `recent` is full, not with every sample.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="host_metrics")
    rank = models.PositiveIntegerField()
    at = models.DateTimeField()
    # Of a job that is to end when its GPUs are idle (`jobs.policies.gpu_idle`).
    gpus_idle_since = models.DateTimeField(null=True, blank=True)
    latest = models.JSONField()
    recent = models.JSONField(default=list)
    history = models.JSONField(default=list)
    # How far apart the points of `history` are, at least, in seconds; 0 while none was left out.
    step_s = models.FloatField(default=0)

    class Meta:
        verbose_name_plural = "host metrics"
        constraints = (
            models.UniqueConstraint(fields=["attempt", "rank"], name="one_host_metrics_per_rank"),
        )

    def __str__(self) -> str:
        return f"metrics of rank {self.rank} of {self.attempt}"
