"""The decoder of what other programs send: JSON text, read by msgspec into declared types.

A message that does not fit is refused by one error, whatever is wrong with it: no JSON, another
type, a number that is none or too large, half of a character, a NUL, which the database does not
store, or lists within lists without end.
"""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

# The id of a row, the number of a link or a request: what a float can hold exactly.
Number = Annotated[int, Meta(ge=0, lt=2**53)]
# A pattern of text that the database stores.
STORABLE = r"\A[^\0]*\Z"
Text = Annotated[str, Meta(max_length=64 * 1024, pattern=STORABLE)]


class MalformedMessageError(ValueError):
    """A message that does not fit its type; the text says where."""


class Decoder(Generic[T]):
    """A decoder of messages of one type."""

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(kind)

    def decode(self, text: str | bytes) -> T:
        """Return the message. MalformedMessageError: it is none of this type."""
        try:
            return self._decoder.decode(text)
        except (ValueError, RecursionError) as error:
            raise MalformedMessageError(str(error)) from error
