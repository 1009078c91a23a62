"""Expected hourly prices of queued jobs, as their backends reported them last."""

from __future__ import annotations

from django.db import models


class ExpectedPrice(models.Model):
    """The price of all jobs with one `price_key`. Needed only where a quota limits money."""

    backend_name = models.CharField(max_length=30)
    price_key = models.CharField(max_length=24)
    # US$ for all nodes; null: unknown. A known price stays until a newer one replaces it.
    usd_per_hour = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    # Why the last query failed, as a sentence, and how many failed in a row.
    problem = models.TextField(blank=True)
    tries = models.PositiveIntegerField(default=0)
    ask_again_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["backend_name", "price_key"], name="one_price_of_the_same_machines"
            ),
        )

    def __str__(self) -> str:
        return f"{self.backend_name} {self.price_key}"
