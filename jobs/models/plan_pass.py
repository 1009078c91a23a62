"""The number of the newest pass over the queue: what an older one still wants to start is void."""

from __future__ import annotations

from django.db import models


class PlanPass(models.Model):
    """One row. A pass raises `number`; each of its starts holds the row and compares."""

    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"pass {self.number}"
