"""Dependencies between jobs. The end of a job and its record here are one transaction."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q

from jobs.models.job import Job
from jobs.statuses import FINAL_STATUSES, JobStatus

_SUCCEEDED = Q(ended_as=JobStatus.SUCCEEDED)


class After(models.TextChoices):
    """The condition on the needed job."""

    SUCCESS = "success", "to succeed"
    END = "end", "to end"


class JobDependencyQuerySet(models.QuerySet["JobDependency"]):
    """Dependencies by state."""

    def unmet(self) -> Self:
        """Return the dependencies that block their job: still open, or broken."""
        met = _SUCCEEDED | Q(waived=True) | (Q(after=After.END) & ~Q(ended_as=""))
        return self.exclude(met)

    def unnoted(self) -> Self:
        """Return the dependencies whose needed job ended and that await `settle_dependencies`."""
        missed = Q(ended_as="") & (Q(needs=None) | Q(needs__status__in=FINAL_STATUSES))
        return self.filter(missed | (Q(noted=False) & ~Q(ended_as="")))


class JobDependency(models.Model):
    """A dependency: `job` starts after `needs`, whose final status becomes `ended_as`.

    Number and name stay when the needed job is deleted. A `waived` dependency counts as met: the
    job is held, and a user decides.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="dependencies")
    needs = models.ForeignKey(Job, on_delete=models.SET_NULL, related_name="dependants", null=True)
    needs_number = models.BigIntegerField()
    needs_name = models.CharField(max_length=100)
    after = models.CharField(max_length=7, choices=After, default=After.SUCCESS)
    ended_as = models.CharField(max_length=14, choices=JobStatus, blank=True)
    waived = models.BooleanField(default=False)
    # Whether `settle_dependencies` has acted on the end of the needed job.
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
        """Whether the dependency no longer blocks its job."""
        if self.waived or self.ended_as == JobStatus.SUCCEEDED:
            return True
        return self.after == After.END and bool(self.ended_as)

    @property
    def is_broken(self) -> bool:
        """Whether the dependency can no longer be met."""
        return bool(self.ended_as) and not self.is_met
