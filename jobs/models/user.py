"""Users who sign in. A superuser is an administrator of the whole installation."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Upper

from jobs.statuses import HourFormat

ZONE_LIMIT = 64


class User(AbstractUser):
    """A person, or a service that acts for a team."""

    # How pages show times to this user. Empty: as their browser does.
    time_zone = models.CharField(max_length=ZONE_LIMIT, blank=True, default="", db_default="")
    hour_format = models.CharField(
        max_length=2, choices=HourFormat, blank=True, default="", db_default=""
    )

    class Meta(AbstractUser.Meta):
        # Names that differ by case alone would pass for one another.
        constraints = (models.UniqueConstraint(Upper("username"), name="one_user_of_a_name"),)
