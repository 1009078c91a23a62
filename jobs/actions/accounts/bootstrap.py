"""The first start of an installation: its first user and project."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from jobs.audit.record import record
from jobs.models import Installation, Membership, Project, User
from jobs.statuses import Role

FIRST_USER = "admin"
FIRST_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The administrator of a new installation, and the project of their first jobs."""

    user: User
    project: Project
    created: bool


@transaction.atomic
def bootstrap() -> Bootstrap:
    """Make the first user, without a password, and the first project. Safe to repeat.

    Once an installation has an administrator nothing is made any more.
    """
    # The installation's only row is the lock: two starts at once make one user.
    Installation.current()
    Installation.objects.select_for_update(no_key=True).get(pk=1)
    admin = User.objects.filter(is_superuser=True).order_by("pk").first()
    created = admin is None
    if admin is None:
        admin = User(username=FIRST_USER, is_superuser=True, is_staff=True)
        admin.set_unusable_password()
        admin.save()
        record(None, "add_user", admin, after={"is_superuser": True})
    project = Project.objects.order_by("pk").first()
    if project is None:
        # Its only member is the administrator, who would have to allow shells in jobs of their own.
        project = Project.objects.create(
            slug=FIRST_PROJECT, name="Default", laptops_may_attach=True
        )
        Membership.objects.create(project=project, user=admin, role=Role.ADMIN)
        after = {"slug": project.slug, "name": project.name, "laptops_may_attach": True}
        record(None, "make_project", project, after=after)
    return Bootstrap(admin, project, created)
