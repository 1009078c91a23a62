"""The shapes of what the API answers: each mirrors what a reader or an action gives.

Fields that are named as an attribute of DRF's own carry a type: ignore; DRF keeps the two apart.
"""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request

from jobs.api.base.text_field import TextField
from jobs.statuses import ProjectState


class MoneyField(serializers.DecimalField):
    """US$ as text with six places, or null where nobody knows."""

    def __init__(self, *, allow_null: bool = True, **options: Any) -> None:
        super().__init__(max_digits=20, decimal_places=6, allow_null=allow_null, **options)


class ProjectSerializer(serializers.Serializer[Any]):
    """A project with the caller's role in it."""

    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.CharField()
    state = serializers.ChoiceField(choices=ProjectState.choices)
    archived_at = serializers.DateTimeField(allow_null=True)


class ProjectBody(serializers.Serializer[Any]):
    """A project to make."""

    slug = TextField()
    name = TextField(required=False, default="", allow_blank=True)


class ProjectChanges(serializers.Serializer[Any]):
    """The new names of a project; a name that is left out does not change."""

    slug = TextField(required=False)
    name = TextField(required=False, allow_blank=True, help_text="Empty: the slug.")


class ProjectListQuery(serializers.Serializer[Any]):
    """The filters of the project list."""

    state = serializers.ChoiceField(
        choices=ProjectState.choices,
        required=False,
        default=ProjectState.ACTIVE,
        help_text="Deleted ones are listed for administrators of the installation alone.",
    )


class ProjectDeleteQuery(serializers.Serializer[Any]):
    """Whether a project is really to be deleted."""

    confirm = TextField(
        required=False, default="", allow_blank=True, help_text="The project's slug once more."
    )


class ProjectDetailSerializer(ProjectSerializer):
    """A project with the number of its jobs by status."""

    job_counts = serializers.DictField(child=serializers.IntegerField())


class JobSerializer(serializers.Serializer[Any]):
    """A job as lists show it."""

    id = serializers.IntegerField()
    project = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    kind_label = serializers.CharField()
    status = serializers.CharField()
    status_label = serializers.CharField()
    wait_reason = serializers.CharField()
    wait_message = serializers.CharField()
    stop_reason = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField()
    exit_code = serializers.IntegerField(allow_null=True)
    num_nodes = serializers.IntegerField()
    backend = serializers.CharField()
    queue = serializers.CharField()
    priority = serializers.IntegerField()
    preemptible = serializers.BooleanField(help_text="It may be stopped for others.")
    submitted_by = serializers.CharField()
    rerun_of = serializers.IntegerField(allow_null=True)
    parent = serializers.IntegerField(  # type: ignore[assignment]
        allow_null=True, help_text="The job whose program submitted it."
    )
    parent_attempt = serializers.IntegerField(allow_null=True, help_text="In which attempt.")
    schedule = serializers.CharField(help_text="Name of what made it; empty: a person did.")
    array = serializers.IntegerField(allow_null=True, help_text="The array it is part of.")
    array_index = serializers.IntegerField(allow_null=True, help_text="Its place there, from 0.")
    array_values = serializers.DictField(
        child=serializers.CharField(), help_text="What it has there of each name."
    )
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    max_duration_s = serializers.IntegerField(allow_null=True)
    stops_at = serializers.DateTimeField(allow_null=True)
    attempt = serializers.IntegerField(allow_null=True)
    attempt_count = serializers.IntegerField()
    usd = MoneyField(help_text="What its attempts have cost.")
    is_final = serializers.BooleanField()
    can_cancel = serializers.BooleanField()
    can_hold = serializers.BooleanField()
    can_release = serializers.BooleanField()
    can_prioritize = serializers.BooleanField()
    can_extend = serializers.BooleanField()
    can_rerun = serializers.BooleanField()
    can_delete = serializers.BooleanField()
    url = serializers.SerializerMethodField(help_text="The job's page.")

    def get_url(self, row: Any) -> str:
        """The page's address, on the host that the caller used."""
        request: Request = self.context["request"]
        project, job_id = (
            (row["project"], row["id"]) if isinstance(row, dict) else (row.project, row.id)
        )
        return str(request.build_absolute_uri(reverse("web:job", args=[project, job_id])))


class DependencySerializer(serializers.Serializer[Any]):
    """A job that comes before."""

    job = serializers.IntegerField()
    name = serializers.CharField()
    after = serializers.CharField(help_text="What it has to do: success or end.")
    ended_as = serializers.CharField(help_text="The status it ended as; empty while it has not.")
    is_met = serializers.BooleanField()


class JobDetailSerializer(JobSerializer):
    """A job with its specification, and the jobs it waits or waited for."""

    dependencies = DependencySerializer(many=True)

    spec_source = serializers.CharField()
    spec = serializers.DictField()


class StageSerializer(serializers.Serializer[Any]):
    """A stage of an attempt; `state` is pending, active, done, failed or stopped."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    state = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    duration_s = serializers.FloatField(allow_null=True)
    detail = serializers.CharField()
    failure = serializers.CharField()


class WorkerSerializer(serializers.Serializer[Any]):
    """One host of an attempt."""

    rank = serializers.IntegerField()
    mesh = serializers.CharField()
    address = serializers.CharField()
    status = serializers.CharField()
    python = serializers.CharField()
    pid = serializers.IntegerField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField()
    ready_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    ssh = serializers.CharField(help_text="How to reach the node; empty where that is not known.")


class DiagnosisSerializer(serializers.Serializer[Any]):
    """A failure that was recognised: its `code` is stable, the rest is for people."""

    code = serializers.CharField()
    title = serializers.CharField()
    evidence = serializers.CharField(help_text="The line that shows it.")
    fix = serializers.CharField()


class AttemptSerializer(serializers.Serializer[Any]):
    """One run of a job."""

    id = serializers.IntegerField()
    number = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    stop_reason = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField()
    exit_code = serializers.IntegerField(allow_null=True)
    cluster_name = serializers.CharField()
    infra = serializers.CharField()
    resources = serializers.CharField()
    usd_per_hour = MoneyField(help_text="Of all nodes together.")
    usd = MoneyField(help_text="Its share of what its cluster has cost.")
    diagnosis = DiagnosisSerializer(allow_null=True)
    log_removed_at = serializers.DateTimeField(
        allow_null=True, help_text="When its log was removed for its age."
    )
    stages = StageSerializer(many=True)
    workers = WorkerSerializer(many=True)


class EventSerializer(serializers.Serializer[Any]):
    """One change, with who, when and from where."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    verb = serializers.CharField()
    old_status = serializers.CharField()
    new_status = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()
    actor = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    attempt = serializers.IntegerField(allow_null=True)
    line = serializers.IntegerField(allow_null=True, help_text="Of the attempt's log.")


class SpecErrorSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a specification."""

    path = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    code = serializers.CharField()
    message = serializers.CharField()
    suggestion = serializers.CharField(allow_null=True)
    document = serializers.IntegerField(
        required=False, help_text="Of several specifications the one it is in, from 0."
    )


class ValidationSerializer(serializers.Serializer[Any]):
    """Whether a specification would be accepted; `spec` is its complete form if so."""

    valid = serializers.BooleanField()
    errors = SpecErrorSerializer(many=True)  # type: ignore[assignment]
    spec = serializers.DictField(allow_null=True)


class TokenSerializer(serializers.Serializer[Any]):
    """One of the caller's tokens, without its secret."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    project = serializers.CharField(help_text="Empty: all of the user's projects.")
    read_only = serializers.BooleanField()  # type: ignore[assignment]
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewTokenSerializer(TokenSerializer):
    """A token just made. Its secret is shown this once."""

    token = serializers.CharField()


class UploadSerializer(serializers.Serializer[Any]):
    """A folder the project has; a specification names it by `reference`."""

    reference = serializers.CharField()
    digest = serializers.CharField()
    size_bytes = serializers.IntegerField()
    file_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class MeSerializer(serializers.Serializer[Any]):
    """Who the caller is to the portal."""

    username = serializers.CharField()
    is_admin = serializers.BooleanField(help_text="Administers the whole installation.")
    token = serializers.CharField(allow_null=True, help_text="Name of the token in use.")
    read_only = serializers.BooleanField()  # type: ignore[assignment]
    projects = ProjectSerializer(many=True)


class ProblemRowSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request. `line`, `suggestion`: only of a specification;
    `position`: only of a pattern, in characters from 0.
    """

    path = serializers.CharField(allow_blank=True)
    code = serializers.CharField()
    message = serializers.CharField()
    line = serializers.IntegerField(allow_null=True, required=False)
    suggestion = serializers.CharField(allow_null=True, required=False)
    position = serializers.IntegerField(allow_null=True, required=False)


class ProblemSerializer(serializers.Serializer[Any]):
    """Every error (RFC 9457). `code` is stable, `detail` says what to do."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = ProblemRowSerializer(many=True, required=False)  # type: ignore[assignment]
