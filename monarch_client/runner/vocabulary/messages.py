"""The decoding of JSON messages of other programs, with the standard library alone.

`object_in` is strict: NaN and numbers beyond a float's range are no JSON. A reader of the fields
of a message catches MALFORMED, which is all that a field of another type can raise.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


class MalformedError(ValueError):
    """A text that is no JSON object."""


def object_in(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a message. MalformedError: it is no JSON object."""
    try:
        found = _decoder.decode(text if isinstance(text, str) else bytes(text).decode())
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"it is not JSON: {error}"[:200]) from error
    if type(found) is not dict:
        raise MalformedError("it is not a JSON object")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text[:20])


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
