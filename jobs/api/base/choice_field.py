"""A choice of REST: a wrong value is answered with the valid ones."""

from __future__ import annotations

from typing import Any, NoReturn

from rest_framework import serializers


class ChoiceField(serializers.ChoiceField):
    """A choice, whose refusal lists the choices."""

    default_error_messages = {"invalid_choice": '"{input}" is none of: {choices}.'}  # noqa: RUF012

    def fail(self, key: str, **values: Any) -> NoReturn:
        """Raise ValidationError with the message `key`."""
        super().fail(key, choices=", ".join(map(str, self.choices)), **values)
