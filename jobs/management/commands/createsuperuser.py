"""`manage.py createsuperuser`: Django's own, with an entry in the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.db import transaction
from django.db.models import Max

from jobs.audit.record import record
from jobs.models import User


class Command(createsuperuser.Command):
    """`manage.py createsuperuser`."""

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Make the user, and record it."""
        newest = User.objects.aggregate(pk=Max("pk"))["pk"] or 0
        super().handle(*args, **options)
        for user in User.objects.filter(pk__gt=newest):
            record(None, "add_user", user, after={"is_superuser": True})
