"""Queues, machines, quotas and shares as REST answers and takes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs.api.base.text_field import TextField

_COUNTED = "jobs, nodes, gpus, gpus:TYPE, or usd_per_hour."
_LENGTH = "A length of time such as 12h, or seconds."


class AmountSerializer(serializers.Serializer[Any]):
    """How much of one thing is used, and of how much."""

    what = serializers.CharField(help_text=_COUNTED)
    used = serializers.FloatField(allow_null=True)
    cap = serializers.FloatField(allow_null=True, help_text="Null: nothing limits it.")
    nominal = serializers.FloatField(
        allow_null=True, help_text="A project's own part. Null: nobody has said one."
    )
    free = serializers.FloatField(allow_null=True)


class PlaceSerializer(serializers.Serializer[Any]):
    """Machines that share one order."""

    kind = serializers.CharField(help_text="pool, or backend: all that it has.")
    name = serializers.CharField()
    backend = serializers.CharField()
    amounts = AmountSerializer(many=True)
    kept = serializers.IntegerField(help_text="Nodes of those used that are on without a job.")
    problem = serializers.CharField(allow_blank=True)
    queues = serializers.ListField(child=serializers.CharField())
    patience_s = serializers.IntegerField()
    half_life_s = serializers.IntegerField()
    reclaim = serializers.BooleanField(help_text="Projects take their nominal part back.")
    preempts_by_rank = serializers.BooleanField(help_text="Queues take from lower ones.")


class QueueSerializer(serializers.Serializer[Any]):
    """A queue with the number of its jobs, of all projects."""

    name = serializers.CharField()
    rank = serializers.IntegerField()
    pool = serializers.CharField(allow_blank=True)
    waiting = serializers.IntegerField()
    held = serializers.IntegerField()
    running = serializers.IntegerField()
    preemptible = serializers.BooleanField(help_text="All its jobs may be stopped for others.")


class PersonUseSerializer(serializers.Serializer[Any]):
    """What one person uses of what each may have."""

    user = serializers.CharField()
    amounts = AmountSerializer(many=True)


class QuotaSerializer(serializers.Serializer[Any]):
    """How much may run at once, and what of it does."""

    id = serializers.IntegerField()
    kind = serializers.CharField(help_text="queue, project, person or each_person.")
    queue = serializers.CharField(allow_blank=True)
    project = serializers.CharField(allow_blank=True)
    user = serializers.CharField(allow_blank=True)
    pool = serializers.CharField(allow_blank=True, help_text="Empty: wherever it runs.")
    amounts = AmountSerializer(many=True)
    people = PersonUseSerializer(many=True)


class ShareSerializer(serializers.Serializer[Any]):
    """What a project has used of a place, of old less; the least for its weight comes first."""

    kind = serializers.CharField()
    place = serializers.CharField()
    project = serializers.CharField(allow_blank=True, help_text="Empty: all others together.")
    used_hours = serializers.FloatField(help_text="Decayed unit-hours: GPUs, else nodes.")
    weight = serializers.FloatField(allow_null=True)
    counts_for = serializers.FloatField(allow_null=True, help_text="used_hours by weight.")
    projects = serializers.IntegerField()
    percent = serializers.FloatField(help_text="Of what all have used there.")


class TurnSerializer(serializers.Serializer[Any]):
    """A job in its turn; one of a project that you do not see has neither number nor names."""

    kind = serializers.CharField()
    place = serializers.CharField()
    position = serializers.IntegerField(help_text="From 1, among those who wait for the place.")
    needs = serializers.CharField()
    since = serializers.DateTimeField()
    job_id = serializers.IntegerField(allow_null=True)
    project = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True)
    owner = serializers.CharField(allow_blank=True)
    queue = serializers.CharField(allow_blank=True)
    priority = serializers.IntegerField(allow_null=True)
    sentence = serializers.CharField(allow_blank=True)


class WeightSerializer(serializers.Serializer[Any]):
    """A project's weight."""

    project = serializers.CharField()
    weight = serializers.FloatField()


class PageQuery(serializers.Serializer[Any]):
    """Where to go on."""

    cursor = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=10_000_000, help_text="`next` of before."
    )
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=200)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "number"}})
class CapsField(serializers.Field[Any, Any, Any, Any]):
    """Amounts by what is counted; what may stand there is the action's to say."""

    # Doubled braces: REST framework formats its messages.
    default_error_messages = {  # noqa: RUF012
        "invalid": 'Give an object such as {{"nodes": 8, "gpus:H100": 64}}.'
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """As it is, if it is an object."""
        if not isinstance(data, dict):
            self.fail("invalid")
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        """As it came."""
        return value


class PoolBody(serializers.Serializer[Any]):
    """What to change of a pool; a new one needs a backend."""

    backend = TextField(required=False, default=None, allow_null=True)
    caps = CapsField(required=False, default=None, allow_null=True)
    patience = TextField(required=False, default=None, allow_null=True, help_text=_LENGTH)
    half_life = TextField(required=False, default=None, allow_null=True, help_text=_LENGTH)
    reclaim = serializers.BooleanField(required=False, default=None, allow_null=True)
    preempts_by_rank = serializers.BooleanField(required=False, default=None, allow_null=True)


class QueueBody(serializers.Serializer[Any]):
    """What to change of a queue."""

    rank = serializers.IntegerField(required=False, default=None, allow_null=True)
    pool = TextField(
        required=False, default=None, allow_null=True, allow_blank=True, help_text="Empty: none."
    )
    preemptible = serializers.BooleanField(required=False, default=None, allow_null=True)


class QuotaBody(serializers.Serializer[Any]):
    """Whose quota, and how much."""

    queue = TextField(required=False, default="", allow_blank=True)
    project = TextField(required=False, default="", allow_blank=True)
    user = TextField(required=False, default="", allow_blank=True)
    per_person = serializers.BooleanField(required=False, default=False)
    pool = TextField(required=False, default="", allow_blank=True)
    caps = CapsField()
    nominal = CapsField(
        required=False,
        default=None,
        allow_null=True,
        help_text="A project's own part of caps, all of it anew. Null: as it is.",
    )


class WeightBody(serializers.Serializer[Any]):
    """The new weight."""

    weight = serializers.FloatField()
