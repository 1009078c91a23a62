"""The runs of one name, and runs beside one another, over REST."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import addressed, answer_with, page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.readers.comparison import comparison
from jobs.readers.job_table import MAX_LIMIT
from jobs.readers.run_history import run_history
from monarch_client.wire.page import Page
from monarch_client.wire.runs import MOST_COMPARED, Comparison, HistoryRun

_MOST_DIGITS = 18


class HistoryQuery(serializers.Serializer[Any]):
    """The name of the runs, and the part of them to return."""

    name = serializers.CharField(max_length=100, help_text="The name of the jobs, exactly.")
    cursor = serializers.CharField(required=False, default=None, allow_null=True, allow_blank=True)
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MAX_LIMIT)


class CompareQuery(serializers.Serializer[Any]):
    """The jobs to compare."""

    jobs = serializers.CharField(
        help_text=f"Their numbers, separated by commas: two to {MOST_COMPARED}, of any projects."
    )

    def validate_jobs(self, value: str) -> list[int]:
        """Return the numbers, each once."""
        words = [word.strip() for word in value.split(",")]
        are_numbers = all(
            word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS for word in words
        )
        numbers = list(dict.fromkeys(int(word) for word in words)) if are_numbers else []
        if not 2 <= len(numbers) <= MOST_COMPARED:  # noqa: PLR2004 - fewer are no comparison
            raise serializers.ValidationError(
                f"Give two to {MOST_COMPARED} numbers of jobs, separated by commas."
            )
        return numbers


class HistoryView(PortalView):
    """`/projects/{slug}/history`."""

    @extend_schema(
        operation_id="run_history",
        parameters=[HistoryQuery],
        responses={200: Page[HistoryRun], **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the jobs of one name, newest first, with times, cost, code and last metrics."""
        project = self.project()
        query = self.parsed(HistoryQuery, request.query_params)
        found = run_history(self.actor, project, query.pop("name"), **query)
        rows = [replace(run, job=addressed(run.job, request)) for run in found.runs]
        return page_with(rows, next=found.next, previous=found.previous)


class CompareView(PortalView):
    """`/compare`."""

    @extend_schema(
        operation_id="run_compare",
        parameters=[CompareQuery],
        responses={200: Comparison, **problems(400, 401, 404)},
    )
    def get(self, request: Request) -> Response:
        """Compare jobs: specifications, times, cost, GPU use, and metrics over steps and time."""
        query = self.parsed(CompareQuery, request.query_params)
        found = comparison(self.actor, query["jobs"])
        runs = [replace(run, job=addressed(run.job, request)) for run in found.runs]
        return answer_with(replace(found, runs=runs))
