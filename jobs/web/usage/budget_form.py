"""The shape of a budget as it is typed into its page."""

from __future__ import annotations

from decimal import Decimal

from django import forms

from jobs.actions.projects.set_budget import LARGEST, MOST_THRESHOLDS
from jobs.statuses import OnSpent

MOST_PERCENT = 1000


class BudgetForm(forms.Form):
    """A project's monthly budget."""

    usd = forms.DecimalField(
        label="US$ per month",
        required=False,
        max_digits=12,
        decimal_places=2,
        min_value=Decimal("0.01"),
        max_value=LARGEST,
        help_text="Empty: no budget.",
    )
    on_spent = forms.ChoiceField(label="When the budget is exhausted", choices=OnSpent.choices)
    warn_at = forms.CharField(
        label="Warn at",
        max_length=200,
        help_text="Percentages, separated by commas.",
    )

    def clean_warn_at(self) -> list[int]:
        """Return whole numbers, each once."""
        words = [
            word.strip().rstrip("%").strip() for word in self.cleaned_data["warn_at"].split(",")
        ]
        numbers = [int(word) for word in words if word.isascii() and word.isdecimal()]
        fits = all(1 <= number <= MOST_PERCENT for number in numbers)
        if len(numbers) != len(words) or not fits or len(numbers) > MOST_THRESHOLDS:
            message = (
                f"Enter at most {MOST_THRESHOLDS} numbers from 1 to {MOST_PERCENT}: 50, 80, 100"
            )
            raise forms.ValidationError(message)
        return sorted(set(numbers))
