"""The shapes of clusters, plans and places in the API's answers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobs.api.base.serializers import MoneyField


class ClusterSerializer(serializers.Serializer[Any]):
    """A cluster that exists. `kind`: row, own (this portal's name, but no row) or foreign."""

    name = serializers.CharField()
    kind = serializers.CharField()
    project = serializers.CharField(help_text="Empty for those without a row.")
    backend = serializers.CharField()
    status = serializers.CharField()
    status_label = serializers.CharField()
    note = serializers.CharField()
    job = serializers.IntegerField(allow_null=True, help_text="The last job on it.")
    job_name = serializers.CharField()
    is_busy = serializers.BooleanField(help_text="Whether that job is still on it.")
    infra = serializers.CharField()
    resources = serializers.CharField()
    num_nodes = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)
    idle_since = serializers.DateTimeField(allow_null=True)
    idle_until = serializers.DateTimeField(allow_null=True)
    usd_per_hour = MoneyField(help_text="Of all nodes together.")
    usd = MoneyField(help_text="What it has cost so far, by its backend's report.")
    idle_usd = MoneyField(help_text="How much of that belongs to no job.")
    owner = serializers.CharField(help_text="Of those without a row: who made it.")
    can_down = serializers.BooleanField()
    can_extend = serializers.BooleanField()


class CandidateSerializer(serializers.Serializer[Any]):
    """One way in which a job could be given its machines."""

    infra = serializers.CharField()
    instance_type = serializers.CharField()
    cpus = serializers.CharField()
    memory = serializers.CharField()
    accelerators = serializers.CharField()
    use_spot = serializers.BooleanField()
    usd_per_hour = MoneyField(help_text="Of all nodes together.")
    is_chosen = serializers.BooleanField()


class PlanSerializer(serializers.Serializer[Any]):
    """What would become of a job. While `is_pending`, ask again in a moment."""

    backend = serializers.CharField()
    candidates = CandidateSerializer(many=True)
    chosen = CandidateSerializer(allow_null=True)
    reasons = serializers.ListField(
        child=serializers.CharField(), help_text="Why there are not more candidates."
    )
    problem = serializers.CharField(help_text="Why there is none.")
    is_pending = serializers.BooleanField()
    max_duration_s = serializers.IntegerField(allow_null=True)
    usd_per_hour = MoneyField(help_text="Of the chosen one.")
    usd = MoneyField(help_text="Of the chosen one, for as long as the job may run.")
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What to think of before submitting it."
    )


class CloudSerializer(serializers.Serializer[Any]):
    """A cloud, and why it is not enabled."""

    name = serializers.CharField()
    is_enabled = serializers.BooleanField()
    reason = serializers.CharField()


class GpuSerializer(serializers.Serializer[Any]):
    """GPUs of one type at one place, over all its nodes."""

    infra = serializers.CharField()
    gpu = serializers.CharField()
    nodes = serializers.IntegerField()
    total = serializers.IntegerField()
    free = serializers.IntegerField()


class InfraSerializer(serializers.Serializer[Any]):
    """One backend, with what is known of it. While `is_asking`, ask again in a moment."""

    backend = serializers.CharField()
    num_nodes = serializers.IntegerField(allow_null=True)
    clouds = CloudSerializer(many=True)
    cloud_problem = serializers.CharField()
    gpus = GpuSerializer(many=True)
    gpu_problem = serializers.CharField()
    asked_at = serializers.DateTimeField(allow_null=True)
    is_asking = serializers.BooleanField()
