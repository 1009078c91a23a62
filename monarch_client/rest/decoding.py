"""From the portal's JSON to the dataclasses of `models`, by their annotations."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from monarch_client.errors import UnexpectedAnswerError
from monarch_client.rest.models import LogPage, Page

T = TypeVar("T")


def decode(kind: type[T], data: Any) -> T:
    """`data` as a `kind`. UnexpectedAnswerError when a key it needs is missing."""
    if not isinstance(data, dict):
        raise UnexpectedAnswerError(f"The portal sent no {kind.__name__}.")
    values = {}
    for name, (hint, required) in _fields(cast("Any", kind)).items():
        if name in data:
            values[name] = _value(hint, data[name])
        elif required:
            raise UnexpectedAnswerError(
                f"The portal's {kind.__name__} has no {name}: is it of another version?"
            )
    return kind(**values)


def decode_page(kind: type[T], data: Any) -> Page[T]:
    """A list's envelope with rows of `kind`."""
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        raise UnexpectedAnswerError(f"The portal sent no list of {kind.__name__}.")
    rows = [decode(kind, row) for row in data["results"]]
    return Page(rows, data.get("next"), data.get("previous"))


def decode_log(kind: type[T], data: Any) -> LogPage[T]:
    """Part of a log, with rows of `kind`."""
    page = decode_page(kind, data)
    return LogPage(page.results, page.next, page.previous, data.get("removed") or "")


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind)
    return {
        f.name: (hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(kind)
    }


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if get_origin(hint) is list and is_dataclass(item := get_args(hint)[0]):
        return [decode(item, row) for row in value]  # type: ignore[arg-type]
    if single := [each for each in get_args(hint) if is_dataclass(each)]:
        return decode(single[0], value)  # type: ignore[arg-type]
    if get_origin(hint) is list and datetime in get_args(hint):
        return [_moment(each) for each in value]
    return _moment(value) if hint is datetime or datetime in get_args(hint) else value


def _moment(text: str) -> datetime:
    # Python 3.10 does not read the Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
