"""The path converter of names that people choose."""

from __future__ import annotations

from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """Text between two slashes without NUL, which PostgreSQL rejects."""

    regex = r"[^/\x00]+"
