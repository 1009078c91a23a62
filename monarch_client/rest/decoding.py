"""The decoder of the portal's JSON into `monarch_client.wire`. Unknown keys are ignored."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from monarch_client import wire
from monarch_client.errors import UnexpectedAnswerError

T = TypeVar("T")


def decode(kind: type[T], data: Any) -> T:
    """Return `data` as a `kind`. UnexpectedAnswerError: a key is missing or of another type."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise UnexpectedAnswerError(
            f"The portal's answer is not a {_name(kind)}: {error}. Is it of another version?"
        ) from error


def decode_page(kind: type[T], data: Any) -> wire.page.Page[T]:
    """Return a list's envelope with rows of `kind`."""
    return decode(wire.page.Page[kind], data)  # type: ignore[valid-type]


def decode_log(kind: type[T], data: Any) -> wire.logs.LogPage[T]:
    """Return part of a log, with rows of `kind`."""
    return decode(wire.logs.LogPage[kind], data)  # type: ignore[valid-type]


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind)) if isinstance(kind, type) else str(kind)
