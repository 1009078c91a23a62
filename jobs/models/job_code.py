"""The code that the next attempt of a job starts with, once programs have synchronized newer."""

from django.db import models

from jobs.ground import clock
from jobs.models.job import Job


class JobCode(models.Model):
    """A checked tar.gz among the uploads, which replaces `workdir` of the job's specification.

    `tree` is the name of the generation on the nodes, and `attempt_number` the attempt that
    stored it.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="code")
    digest = models.CharField(max_length=64, db_index=True)
    tree = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    file_count = models.PositiveIntegerField()
    attempt_number = models.PositiveIntegerField()
    stored_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"code of {self.job}"

    @property
    def reference(self) -> str:
        """The name of the archive in a specification."""
        return f"upload:{self.digest}"
