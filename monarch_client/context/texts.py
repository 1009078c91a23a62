"""Texts that messages can have."""

from __future__ import annotations


def check_text(noun: str, value: object) -> None:
    """Raise TypeError or ValueError unless a message can have the value as its text."""
    if not isinstance(value, str):
        raise TypeError(f"{noun} is a string, and not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{noun} cannot be encoded as UTF-8: {value!r}") from error
