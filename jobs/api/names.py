"""The path converter of names that people choose."""

from __future__ import annotations

from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """Text between two slashes without NUL, which the database takes in no comparison."""

    regex = r"[^/\x00]+"
