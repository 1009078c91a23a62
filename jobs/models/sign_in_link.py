"""One-time sign-in links, with which the first user signs in without a password."""

from django.conf import settings
from django.db import models

from jobs.ground import clock


class SignInLink(models.Model):
    """A link that works once, until it expires. Only the digest of its secret is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"link for {self.user}"
