"""Members of projects with their roles. `jobs.permissions` has the rules."""

from django.conf import settings
from django.db import models

from jobs.models.project import Project
from jobs.statuses import Role


class Membership(models.Model):
    """A user's role in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=12, choices=Role)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["project", "user"], name="one_role_per_member"),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"
