"""Exceptions as data: type, arguments, text and traceback, and where they were raised."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from . import classes
from .codec import CodecError

if TYPE_CHECKING:
    from typing import Any

    from .codec import Codec

_LONGEST_TEXT = 100_000


def describe(
    error: BaseException, codec: Codec, *, rank: int | None = None, host: str | None = None
) -> dict[str, Any]:
    """Return what a client needs to raise the exception of an actor or of the driver.

    Monarch wraps the exception of an endpoint; the client gets the original.
    """
    original, text = _unwrapped(error)
    failure: dict[str, Any] = {
        "type": classes.name_of(type(original)),
        "message": str(original)[:_LONGEST_TEXT],
        "traceback": text[-_LONGEST_TEXT:],
        "rank": rank,
        "host": host,
    }
    arguments = original.args
    if isinstance(original, OSError) and original.filename is not None:
        arguments = (*arguments[:2], original.filename)
    state = {key: value for key, value in vars(original).items() if not key.startswith("_")}
    # A RemoteError is made of the text where the exception has more than data.
    for parts in ({"args": arguments, "state": state}, {"args": arguments, "state": {}}):
        try:
            codec.encode(parts)
        except CodecError:
            continue
        failure.update(parts)
        break
    return failure


def rebuild(failure: dict[str, Any], codec: Codec) -> Exception | None:
    """Return the exception if its class is known here and is made of data, else None."""
    cls = codec.find_class(failure["type"])
    if cls is None or "args" not in failure:
        return None
    try:
        return classes.build_exception(cls, tuple(failure["args"]), failure["state"])
    except ValueError:
        return None


def _unwrapped(error: BaseException) -> tuple[BaseException, str]:
    """Return the exception of an endpoint, and its traceback on the worker."""
    original = getattr(error, "exception", None)
    if type(error).__name__ == "ActorError" and isinstance(original, BaseException):
        return original, str(error)
    return error, "".join(traceback.format_exception(type(error), error, error.__traceback__))
