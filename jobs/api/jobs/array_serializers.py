"""The shape of an array, as `readers.job_array` gives it."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request

from jobs.api.base.serializers import JobSerializer


class BatchSerializer(serializers.Serializer[Any]):
    """Jobs that were submitted together, in the order of their specifications."""

    results = JobSerializer(many=True)


class ArraySerializer(serializers.Serializer[Any]):
    """An array with its jobs; of those that were run again, the newest."""

    id = serializers.IntegerField()
    project = serializers.CharField()
    name = serializers.CharField()
    size = serializers.IntegerField()
    max_parallel = serializers.IntegerField(allow_null=True)
    values = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many of its jobs stand in each status."
    )
    deleted = serializers.IntegerField(help_text="How many of its jobs have been deleted.")
    submitted_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    is_final = serializers.BooleanField()
    can_cancel = serializers.BooleanField()
    can_rerun_failed = serializers.BooleanField()
    jobs = JobSerializer(many=True)
    url = serializers.SerializerMethodField(help_text="The array's page.")

    def get_url(self, row: Any) -> str:
        """The page's address, on the host that the caller used."""
        request: Request = self.context["request"]
        return str(request.build_absolute_uri(reverse("web:array", args=[row.project, row.id])))
