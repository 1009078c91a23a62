"""Jobs: what users submitted, and its status. Only `jobs.lifecycle` writes the status."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.expressions import RawSQL

from jobs.ground import clock
from jobs.models.job_array import JobArray
from jobs.models.project import Project
from jobs.policies.job_request import COLUMNS, JobRequest
from jobs.statuses import (
    FINAL_STATUSES,
    JobKind,
    JobStatus,
    StopReason,
    WaitReason,
)
from monarch_client.spec.tpu import hosts_of_node

_NONE_AFTER = (
    "NOT EXISTS (SELECT FROM jobs_attempt AS later"
    " WHERE later.job_id = jobs_job.id AND later.number > %s)"
)


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs by their next step."""

    def in_status(self, *statuses: JobStatus) -> Self:
        """Return the jobs in one of `statuses`."""
        return self.filter(status__in=statuses)

    def unfinished(self) -> Self:
        """Return the jobs that have not ended."""
        return self.exclude(status__in=FINAL_STATUSES)

    def without_attempt_after(self, number: int) -> Self:
        """Return the jobs that have no attempt with a higher number."""
        # As a subquery of Django's it takes three times as long to put together as the statement
        # around it, several times for each job.
        is_boolean = models.BooleanField()
        return self.filter(RawSQL(_NONE_AFTER, [number], is_boolean))  # noqa: S611 - a constant

    def orphaned(self) -> Self:
        """Return unfinished children, except detached ones, whose parent ended or was deleted.

        A child that serves its parent's driver ends with the attempt of that driver.
        """
        parent_ended = Q(parent=None) | Q(parent__status__in=FINAL_STATUSES)
        driver_ended = Job.objects.unfinished().filter(
            request_options__serves_parent=True,
            parent__attempts__number=F("parent_attempt"),
            parent__attempts__ended_at__isnull=False,
        )
        # A preempted job would be queued again.
        ends = Q(status=JobStatus.STOPPING) & ~Q(stop_reason=StopReason.PREEMPTED)
        children = self.unfinished().filter(parent_number__isnull=False, detached=False)
        return children.filter(parent_ended | Q(pk__in=driver_ended.values("pk"))).exclude(ends)

    def newest_of_arrays(self) -> Self:
        """Leave out the jobs of an array that were rerun: the newest job of each index counts."""
        later = Job.objects.filter(
            array=OuterRef("array"), array_index=OuterRef("array_index"), pk__gt=OuterRef("pk")
        )
        return self.exclude(Exists(later))


# The condition on jobs that may run on a warm cluster.
REQUESTS_REUSE = Q(request_options__has_key="reuse") | Q(request_options__has_key="cluster")


class Job(models.Model):
    """A submitted job: `spec` is the checked specification, `spec_source` the text as sent."""

    # Without the usual indexes of foreign keys, which each change of the status would write: the
    # ones below begin with the same columns, or leave out the many rows without a value.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="jobs", db_index=False
    )
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=JobKind)
    spec = models.JSONField()
    spec_source = models.TextField(blank=True)
    # The fields of `request` that have no column here.
    request_options = models.JSONField(default=dict, db_default={}, blank=True)
    num_nodes = models.PositiveIntegerField(default=1)
    backend_name = models.CharField(max_length=30)
    queue_name = models.CharField(max_length=60, default="default")
    priority = models.IntegerField(default=50)
    # Accelerators of all nodes, the time limit of an attempt, and the concurrency group.
    gpu_type = models.CharField(max_length=80, blank=True)
    gpu_count = models.PositiveIntegerField(default=0)
    duration_s = models.PositiveIntegerField(null=True, blank=True)
    group_name = models.CharField(max_length=60, blank=True)
    group_limit = models.PositiveIntegerField(default=1)
    # Equal for jobs that request the same machines, and so cost the same on one backend.
    price_key = models.CharField(max_length=24, blank=True)
    # Of the machines, if the job may run on any matching warm cluster; else empty.
    fingerprint = models.CharField(max_length=64, blank=True)
    # `preempted_by` is the job that it was stopped for, until it starts again.
    preemptible = models.BooleanField(default=False)
    preempted_by = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="preempted",
        db_index=False,
    )
    # Jobs were preempted for it, and it has not started since.
    has_claim = models.BooleanField(default=False, db_column="is_owed")
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    rerun_of = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, db_index=False
    )
    # The job and attempt whose driver submitted it. `parent_number` outlives the parent.
    parent = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="children",
        db_index=False,
    )
    parent_number = models.PositiveBigIntegerField(null=True, blank=True)
    parent_attempt = models.PositiveIntegerField(null=True, blank=True)
    # The number of its ancestors, and whether it outlives them.
    depth = models.PositiveSmallIntegerField(default=0)
    detached = models.BooleanField(default=False)
    array = models.ForeignKey(
        JobArray,
        on_delete=models.SET_NULL,
        related_name="jobs",
        null=True,
        blank=True,
        db_index=False,
    )
    # Its index in the array, from 0, and its values.
    array_index = models.PositiveIntegerField(null=True, blank=True)
    array_values = models.JSONField(default=dict, blank=True)

    # Of the specification, as users changed them since; and a remark.
    labels = models.JSONField(default=dict, db_default={}, blank=True)
    note = models.TextField(blank=True, db_default="")

    status = models.CharField(max_length=14, choices=JobStatus, default=JobStatus.QUEUED)
    held = models.BooleanField(default=False)
    wait_reason = models.CharField(max_length=12, choices=WaitReason, blank=True)
    # While STOPPING: why it is being stopped. Once final: why it ended.
    stop_reason = models.CharField(max_length=20, choices=StopReason, blank=True)
    # What happened, and what to do about it: a sentence each.
    message = models.TextField(blank=True)
    hint = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    failure_count = models.PositiveIntegerField(default=0)
    recovery_count = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    # Seconds by which users have extended `portal.max_duration`.
    extended_s = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField(default=clock.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    stopping_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(fields=["project", "-id"], name="job_table"),
            models.Index(fields=["project", "status", "-id"], name="job_table_by_status"),
            models.Index(
                fields=["-priority", "id"],
                condition=Q(status=JobStatus.QUEUED),
                name="job_queue",
            ),
            models.Index(
                fields=["status", "id"],
                condition=~Q(status__in=sorted(FINAL_STATUSES)),
                name="job_unfinished",
            ),
            models.Index(
                fields=["array", "array_index", "-id"],
                condition=Q(array__isnull=False),
                name="job_of_array",
            ),
            models.Index(
                fields=["id"],
                condition=Q(status=JobStatus.QUEUED) & REQUESTS_REUSE,
                name="job_takes_kept",
            ),
            *(
                models.Index(
                    fields=[other],
                    condition=Q(**{f"{other}__isnull": False}),
                    name=f"job_by_{other}",
                )
                for other in ("preempted_by", "rerun_of", "parent")
            ),
            # What ended lately, for the overview.
            models.Index(
                fields=["project", "-ended_at"],
                condition=Q(ended_at__isnull=False),
                name="job_by_end",
            ),
            models.Index(
                fields=["project", "gpu_type", "-id"],
                condition=Q(gpu_count__gt=0),
                name="job_by_gpu",
            ),
            # The filters of the job table; migrations add those of labels and of
            # the parts of names.
            models.Index(fields=["project", "submitted_by", "-id"], name="job_by_user"),
            models.Index(fields=["project", "queue_name", "-id"], name="job_by_queue"),
            models.Index(fields=["project", "backend_name", "-id"], name="job_by_backend"),
            models.Index(fields=["project", "kind", "-id"], name="job_by_kind"),
            models.Index(fields=["project", "-created_at"], name="job_by_time"),
            models.Index(
                fields=["project", "stop_reason", "-id"],
                # As two comparisons, which the planner matches with a filter by one reason.
                condition=~Q(stop_reason="") & ~Q(stop_reason=StopReason.COMPLETED),
                name="job_by_reason",
            ),
            # A name means the newest job of that name.
            models.Index(fields=["project", "name", "-id"], name="job_by_name"),
        )
        constraints = (
            models.CheckConstraint(
                condition=~Q(status__in=sorted(FINAL_STATUSES)) | Q(ended_at__isnull=False),
                name="final_job_has_an_end",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"

    @property
    def request(self) -> JobRequest:
        """Return the request, as the job was admitted with it."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return JobRequest.stored(columns, self.request_options)

    @property
    def num_hosts(self) -> int:
        """Return the number of ranks: a node that is a TPU slice has several hosts."""
        return self.num_nodes * hosts_of_node(self.gpu_type)

    @property
    def is_final(self) -> bool:
        """Whether the job has ended for good."""
        return JobStatus(self.status).is_final
