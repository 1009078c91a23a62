"""The shapes of what the API is asked. Meaning is the business of `JobSpec` and the actions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs.actions.jobs.annotate import NOTE_LIMIT
from jobs.actions.jobs.bulk import BulkAction
from jobs.actions.jobs.submit import MOST_DOCUMENTS
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.flag_field import FlagField
from jobs.api.base.text_field import TextField
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.readers.job_filter import REASONS, moment_in
from jobs.readers.job_pages import SORT_WORDS
from jobs.readers.job_table import MAX_LIMIT
from jobs.statuses import JobKind, JobStatus
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from monarch_client.wire.bulk import BULK_LIMIT


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object"}]})
class SpecField(serializers.Field[Any, Any, Any, Any]):
    """A specification as text or as an object."""

    default_error_messages = {"invalid": "Give the specification as text or as an object."}  # noqa: RUF012

    def to_internal_value(self, data: Any) -> str | dict[str, Any]:
        """Return a text or an object unchanged; everything else is an error."""
        if not isinstance(data, str | dict):
            self.fail("invalid")
        return data

    def to_representation(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


class SubmitBody(serializers.Serializer[Any]):
    """A job to submit or to validate."""

    spec = SpecField()


class RerunBody(serializers.Serializer[Any]):
    """Options of a rerun."""

    drop_deleted = FlagField(
        default=False, help_text="Leave out dependencies on jobs that were deleted."
    )


class BatchBody(serializers.Serializer[Any]):
    """Jobs to submit together: `specs` is a list, `spec` a YAML text with several documents."""

    specs = serializers.ListField(
        child=SpecField(), required=False, min_length=1, max_length=MOST_DOCUMENTS
    )
    spec = TextField(required=False, trim_whitespace=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of `specs` and `spec`."""
        if len(attrs) != 1:
            raise serializers.ValidationError("Give either specs or spec.")
        return attrs


class LabelsField(serializers.DictField):
    """A mapping of label names to values; null removes the label."""

    def __init__(self, **options: Any) -> None:
        value = TextField(allow_null=True, allow_blank=True)
        super().__init__(child=value, help_text="null removes a label.", **options)


class AnnotateBody(serializers.Serializer[Any]):
    """The new labels of a job, which leave its others as they are, and its note."""

    labels = LabelsField(required=False)
    note = TextField(required=False, allow_blank=True, max_length=NOTE_LIMIT)


class BulkBody(serializers.Serializer[Any]):
    """An action, and the jobs to act on."""

    action = ChoiceField(choices=[action.value for action in BulkAction])
    jobs = serializers.ListField(
        child=WholeNumberField(min_value=1, max_value=2**62),
        min_length=1,
        max_length=BULK_LIMIT,
        help_text="Their numbers.",
    )
    priority = WholeNumberField(
        required=False,
        min_value=LOWEST_PRIORITY,
        max_value=HIGHEST_PRIORITY,
        help_text="For prioritize alone.",
    )
    labels = LabelsField(required=False)
    drop_deleted = FlagField(
        default=False, help_text="For rerun: leave out dependencies on jobs that were deleted."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require the field of an action, and refuse that of another one."""
        for action, name in ((BulkAction.PRIORITIZE, "priority"), (BulkAction.LABEL, "labels")):
            if (attrs["action"] == action) != (name in attrs):
                message = f"Give {name} with the action {action}, and with no other."
                raise serializers.ValidationError({name: message})
        return attrs


class AttemptListQuery(serializers.Serializer[Any]):
    """The part of a job's attempts to return."""

    workers = ChoiceField(
        choices=["all", "newest", "none"],
        default="all",
        help_text="Which attempts come with their workers, of which each may have a thousand.",
    )


class AttemptQuery(serializers.Serializer[Any]):
    """The attempt to return."""

    attempt = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2**31 - 1,
        help_text="Its number; the newest one else.",
    )


class TokenBody(serializers.Serializer[Any]):
    """A token to make."""

    name = serializers.CharField(max_length=100)
    project = serializers.SlugField(required=False, allow_null=True, default=None)
    read_only = FlagField(required=False, default=False)  # type: ignore[assignment]
    days = WholeNumberField(
        required=False, allow_null=True, default=None, min_value=1, max_value=3650
    )


class PageQuery(serializers.Serializer[Any]):
    """The position to continue a list from."""

    cursor = WholeNumberField(
        required=False, default=0, min_value=0, max_value=10_000_000, help_text="`next` of before."
    )
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MAX_LIMIT)


class JobQuery(serializers.Serializer[Any]):
    """The filters of the job list."""

    status = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="One or more statuses, separated by commas.",
    )
    user = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="A user name, or `me`."
    )
    name = serializers.CharField(required=False, allow_blank=True, default="")
    kind = ChoiceField(choices=JobKind.choices, required=False, allow_blank=True, default="")
    array = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2**62,
        help_text="Only jobs of this array.",
    )
    parent = WholeNumberField(  # type: ignore[assignment]
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2**62,
        help_text="Only jobs that the program of this job submitted.",
    )
    gpu = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="Only jobs that request GPUs of this type, such as H100.",
    )
    queue = serializers.CharField(required=False, allow_blank=True, default="")
    backend = serializers.CharField(required=False, allow_blank=True, default="")
    reason = ChoiceField(
        choices=sorted(REASONS),
        required=False,
        allow_blank=True,
        default="",
        help_text="Why jobs wait or ended.",
    )
    label = serializers.CharField(  # type: ignore[assignment]
        required=False,
        allow_blank=True,
        default="",
        help_text="`team=rl`, or `team` with any value; several, separated by commas.",
    )
    since = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="Submitted since this ISO time, or this long ago, such as `24h`.",
    )
    until = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="Submitted before, as `since`."
    )
    q = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="Looks in names and ids."
    )
    sort = ChoiceField(
        choices=[word for word in SORT_WORDS if word],
        required=False,
        allow_blank=True,
        default="",
        help_text="Another order than newest first, of the newest 2,000 that match; "
        "a minus reverses it.",
    )
    pin = FlagField(default=False, help_text="Jobs that have not ended come first.")
    cursor = serializers.CharField(required=False, default=None, allow_null=True, allow_blank=True)
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MAX_LIMIT)

    def validate_status(self, value: str) -> tuple[str, ...]:
        """Split at commas; a word that is no status is an error."""
        words = tuple(word for word in value.split(",") if word)
        unknown = sorted(set(words) - set(JobStatus))
        if unknown:
            known = ", ".join(JobStatus)
            raise serializers.ValidationError(f"No status {unknown[0]}; there are {known}.")
        return words

    def validate_since(self, value: str) -> str:
        """Refuse a text that names no time."""
        if value and moment_in(value) is None:
            raise serializers.ValidationError("Give an ISO time, or a duration such as 24h.")
        return value

    validate_until = validate_since


class EventQuery(serializers.Serializer[Any]):
    """The position in a job's history to continue from."""

    after = WholeNumberField(required=False, default=0, min_value=0)
    limit = WholeNumberField(required=False, default=200, min_value=1, max_value=1000)
