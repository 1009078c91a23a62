"""What jobs that ask for the same machines would cost an hour, as their backend said last."""

from __future__ import annotations

from django.db import models


class ExpectedPrice(models.Model):
    """One answer for all jobs with this `price_key`; kept only where a quota counts money."""

    backend_name = models.CharField(max_length=30)
    price_key = models.CharField(max_length=24)
    # US$ for all nodes; null: nobody knows. One that is known stays until there is a newer one.
    usd_per_hour = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    # Why the last question had no answer, as a sentence, and how many had none in a row.
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
