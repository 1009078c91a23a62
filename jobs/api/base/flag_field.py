"""The JSON field for true or false."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class FlagField(serializers.BooleanField):
    """A field of a JSON body that is true or false: 0, "no" and the like are refused."""

    def to_internal_value(self, data: Any) -> bool:
        """Return a boolean unchanged; everything else is an error."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
