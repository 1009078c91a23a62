"""Whole numbers as they are meant: DRF's own field takes "5.0" for 5."""

from __future__ import annotations

import re
from typing import Any

from rest_framework import serializers

_DIGITS = re.compile(r"[+-]?[0-9]+")


class WholeNumberField(serializers.IntegerField):
    """A whole number in a query or a body; a text with a decimal point is refused."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number. ValidationError for a text of anything but digits and a sign."""
        if isinstance(data, str) and not _DIGITS.fullmatch(data):
            self.fail("invalid")
        return super().to_internal_value(data)
