"""Text as it is meant: DRF's own field takes 5 for "5"."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class TextField(serializers.CharField):
    """A string in what a request says; a number or a truth value is none, and refused."""

    def to_internal_value(self, data: Any) -> str:
        """Return the text. ValidationError for anything else."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)
