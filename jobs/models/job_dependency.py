"""One job waits for another. What became of that one is noted in the transaction of its end."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q

from jobs.models.job import Job
from jobs.statuses import FINAL_STATUSES, JobStatus

_SUCCEEDED = Q(ended_as=JobStatus.SUCCEEDED)


class After(models.TextChoices):
    """What has to have become of the needed job."""

    SUCCESS = "success", "to succeed"
    END = "end", "to end"


class JobDependencyQuerySet(models.QuerySet["JobDependency"]):
    """Dependencies by how they stand."""

    def unmet(self) -> Self:
        """Those that keep their job from starting: still open, or never to be met."""
        met = _SUCCEEDED | Q(waived=True) | (Q(after=After.END) & ~Q(ended_as=""))
        return self.exclude(met)

    def unnoted(self) -> Self:
        """Those whose needed job has ended, which nobody has acted on yet."""
        missed = Q(ended_as="") & (Q(needs=None) | Q(needs__status__in=FINAL_STATUSES))
        return self.filter(missed | (Q(noted=False) & ~Q(ended_as="")))


class JobDependency(models.Model):
    """`job` starts after `needs`. `ended_as` is the final status of that, once it has one.

    Number and name stay when the needed job is deleted. `waived`: it counts no more, because
    somebody may start the job all the same.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="dependencies")
    needs = models.ForeignKey(Job, on_delete=models.SET_NULL, related_name="dependants", null=True)
    needs_number = models.BigIntegerField()
    needs_name = models.CharField(max_length=100)
    after = models.CharField(max_length=7, choices=After, default=After.SUCCESS)
    ended_as = models.CharField(max_length=14, choices=JobStatus, blank=True)
    waived = models.BooleanField(default=False)
    # Whether the end of the needed job has been acted on, and told to who waits.
    noted = models.BooleanField(default=False)

    objects = JobDependencyQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["job", "needs_number"], name="one_row_per_dependency"),
        )

    def __str__(self) -> str:
        return f"{self.job_id} after {self.needs_number}"

    @property
    def is_met(self) -> bool:
        """Whether it keeps its job from starting no more."""
        if self.waived or self.ended_as == JobStatus.SUCCEEDED:
            return True
        return self.after == After.END and bool(self.ended_as)

    @property
    def is_broken(self) -> bool:
        """Whether it never will be met."""
        return bool(self.ended_as) and not self.is_met
