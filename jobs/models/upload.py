"""Folders that users upload, named by their content: the same folder is sent once."""

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


def blob_name_of(digest: str) -> str:
    """Return the name in the blob store of the archive with this digest."""
    return f"uploads/{digest}.tar.gz"


class Upload(models.Model):
    """A checked tar.gz in the blob store under `uploads/<digest>.tar.gz`, owned by one project.

    The blob is shared between projects; a project reaches only digests it has uploaded itself.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="uploads")
    digest = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    file_count = models.PositiveIntegerField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["project", "digest"], name="one_upload_per_project"),
        )

    def __str__(self) -> str:
        return self.reference

    @property
    def reference(self) -> str:
        """The name of the upload in a specification."""
        return f"upload:{self.digest}"

    @property
    def blob_name(self) -> str:
        """The name of the upload in the blob store."""
        return blob_name_of(self.digest)
