"""A project's monthly budget over REST."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.set_budget import LARGEST, MOST_THRESHOLDS, remove_budget, set_budget
from jobs.api.base.answers import answer_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.permissions import require_budget
from jobs.readers.budget import budget_view
from jobs.statuses import OnSpent
from monarch_client.wire.money import Budget

LEAST = Decimal("0.01")


class BudgetBody(serializers.Serializer[Any]):
    """A budget to set."""

    usd = serializers.DecimalField(
        max_digits=12,
        decimal_places=2,
        min_value=LEAST,
        max_value=LARGEST,
        allow_null=True,
        help_text="US$ a month; null takes the budget away.",
    )
    on_spent = ChoiceField(
        choices=OnSpent.choices,
        required=False,
        allow_null=True,
        default=None,
        help_text="What happens when it is used up: people are notified (warn), no further job "
        "starts (hold), or running jobs are stopped too (stop). Null: as it is; if new, hold.",
    )
    warn_at = serializers.ListField(
        child=WholeNumberField(min_value=1, max_value=1000),
        required=False,
        allow_null=True,
        default=None,
        max_length=MOST_THRESHOLDS,
        help_text="The percentages to notify at. Null: as it is; of a new budget, 50, 80, 100.",
    )


class BudgetView(PortalView):
    """`/projects/{slug}/budget`."""

    tag = "projects"

    @extend_schema(
        operation_id="budget_get",
        responses={200: Budget, **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Show the project's budget of this month, and what was spent of it so far."""
        return answer_with(budget_view(self.actor, self.project()))

    @extend_schema(
        operation_id="budget_set",
        request=BudgetBody,
        responses={200: Budget, **problems(400, 401, 403, 404, 415)},
    )
    def put(self, request: Request, slug: str) -> Response:
        """Set it, or take it away. For administrators of the installation."""
        project = self.project()
        require_budget(self.actor)
        body = self.parsed(BudgetBody, request.data)
        if body["usd"] is None:
            remove_budget(self.actor, project)
        else:
            on_spent = OnSpent(body["on_spent"]) if body["on_spent"] else None
            set_budget(self.actor, project, body["usd"], on_spent, body["warn_at"])
        return answer_with(budget_view(self.actor, project))
