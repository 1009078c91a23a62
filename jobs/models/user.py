"""Users who sign in. A superuser is an administrator of the whole installation."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person, or a service that acts for a team."""
