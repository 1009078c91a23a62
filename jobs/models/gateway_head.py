"""Head nodes that are connected to the gateway, and to which of its processes."""

from __future__ import annotations

from django.db import models

from jobs.models.attempt import Attempt


class GatewayHead(models.Model):
    """The connection of an attempt's head node, valid until `expires_at` by the database's clock.

    `address` is where other gateway processes reach this one; `hello` is the head's first message.
    """

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="gateway_head"
    )
    instance = models.CharField(max_length=40)
    address = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField()
    hello = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"head of {self.attempt} at {self.instance}"
