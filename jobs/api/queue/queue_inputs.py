"""The bodies and queries of requests about queues, pools, quotas and weights."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs.api.base.flag_field import FlagField
from jobs.api.base.text_field import TextField
from jobs.api.base.whole_number_field import WholeNumberField

_LENGTH = "A length of time such as 12h, or seconds."


class TimelineQuery(serializers.Serializer[Any]):
    """The length of a timeline, with the present in its middle."""

    hours = WholeNumberField(required=False, default=6, min_value=1, max_value=24 * 14)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "number"}})
class CapsField(serializers.Field[Any, Any, Any, Any]):
    """Amounts by what is counted; what may stand there is the action's to say."""

    # Doubled braces: REST framework formats its messages.
    default_error_messages = {  # noqa: RUF012
        "invalid": 'Give an object such as {{"nodes": 8, "gpus:H100": 64}}.'
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return an object unchanged; everything else is an error."""
        if not isinstance(data, dict):
            self.fail("invalid")
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


class PoolBody(serializers.Serializer[Any]):
    """The changes to a pool; a new one needs a backend."""

    backend = TextField(required=False, default=None, allow_null=True)
    caps = CapsField(required=False, default=None, allow_null=True)
    patience = TextField(required=False, default=None, allow_null=True, help_text=_LENGTH)
    half_life = TextField(required=False, default=None, allow_null=True, help_text=_LENGTH)
    reclaim = FlagField(required=False, default=None, allow_null=True)
    preempts_by_rank = FlagField(required=False, default=None, allow_null=True)


class QueueBody(serializers.Serializer[Any]):
    """The changes to a queue."""

    rank = WholeNumberField(required=False, default=None, allow_null=True)
    pool = TextField(
        required=False, default=None, allow_null=True, allow_blank=True, help_text="Empty: none."
    )
    preemptible = FlagField(required=False, default=None, allow_null=True)


class QuotaBody(serializers.Serializer[Any]):
    """The scope and the amount of a quota."""

    queue = TextField(required=False, default="", allow_blank=True)
    project = TextField(required=False, default="", allow_blank=True)
    user = TextField(required=False, default="", allow_blank=True)
    per_person = FlagField(required=False, default=False)
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
