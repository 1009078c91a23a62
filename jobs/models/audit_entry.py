"""The audit log: who changed what, when and from where."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock


class AuditEntry(models.Model):
    """One change by one caller. The database refuses to update or delete an entry.

    An entry has copies of names and ids instead of foreign keys, so it outlives the rows it names.
    """

    at = models.DateTimeField(default=clock.now, editable=False)
    verb = models.CharField(max_length=40)
    # The caller: the user, the API token, and the job whose program called.
    user_id = models.BigIntegerField(null=True)
    username = models.CharField(max_length=150, blank=True)
    token_id = models.BigIntegerField(null=True)
    token_name = models.CharField(max_length=100, blank=True)
    caller_job_id = models.BigIntegerField(null=True)
    # The client's address, `schedule NAME`, or `command line`.
    source = models.CharField(max_length=60)
    request_id = models.CharField(max_length=64, blank=True)
    # The object that changed, and its project.
    kind = models.CharField(max_length=20)
    object_id = models.CharField(max_length=20, blank=True)
    name = models.CharField(max_length=250, blank=True)
    project_id = models.BigIntegerField(null=True)
    project_slug = models.CharField(max_length=60, blank=True)
    # The values that changed; null where there were none.
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        indexes = (
            models.Index(fields=["kind", "object_id", "id"], name="audit_of_object"),
            models.Index(fields=["project_id", "id"], name="audit_of_project"),
        )

    def __str__(self) -> str:
        return f"{self.username or self.source}: {self.verb} {self.kind} {self.name}"
