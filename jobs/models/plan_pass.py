"""The number of the newest scheduling pass. Decisions of an older pass are void."""

from __future__ import annotations

from django.db import models


class PlanPass(models.Model):
    """The only row. A pass raises `number`; each start locks the row and compares."""

    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"pass {self.number}"
