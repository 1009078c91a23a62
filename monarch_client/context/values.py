"""Values as bytes: the one place that pickles and unpickles what programs send to each other.

A payload is a value, an error, or an object of the host's store: values above 64 kB are written to
the store at once, so that the messages between processes stay small. This module knows no process
and no reference count; `refs` registers the references that a value contains.
"""

from __future__ import annotations

import pickle
import traceback
from types import TracebackType
from typing import Any

import msgspec

from monarch_client.context import pickling
from monarch_client.context.errors import TaskError
from monarch_client.context.objects import Serialized, deserialize_object, serialize
from monarch_client.context.refs import Home, contained_refs, load_for

# A pickle; a pickled error; an object's id in the host's store; an object's bytes, with buffers.
VALUE, ERROR, STORED, PACKED = 0, 1, 2, 3
LARGEST_INLINE = 64 * 1024
# What is not larger is never written to the store.
SMALLEST_STORED = 1024
# Of a pickled error, and of its text.
_LARGEST_ERROR, _MOST_CHARS = 1 << 20, 1 << 16
_PLAIN = frozenset({int, float, str, bytes, bool, type(None)})
_PROTOCOL = 5


class Payload(msgspec.Struct, array_like=True, frozen=True):
    """A value or an error, and the ids of the references in it.

    A stored value has its size, and the host to fetch it from unless it is the reader's own.
    """

    kind: int
    data: bytes
    refs: tuple[bytes, ...] = ()
    size: int = 0
    source: str = ""


class RemoteTraceback(Exception):  # noqa: N818 - shown as the cause of an error, never raised
    """The traceback of an error in the process that raised it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def pickled_arguments(args: list[Any], kwargs: dict[str, Any], home: Home) -> Payload:
    """Pickle the arguments of a call: plain ones without a pickler that looks at each object."""
    is_plain = all(type(each) in _PLAIN for each in (*args, *kwargs.values()))
    return _to_payload((args, kwargs), home, is_plain=is_plain)


def to_payload(value: object, home: Home) -> Payload:
    """Pickle a value. A large one is written to the store: StoreFullError if it has no room."""
    return _to_payload(value, home, is_plain=type(value) in _PLAIN)


def _to_payload(value: object, home: Home, *, is_plain: bool) -> Payload:
    refs: list[bytes] = []
    if is_plain:
        data = pickle.dumps(value, _PROTOCOL)
        if len(data) <= SMALLEST_STORED or len(data) <= home.inline_limit:
            return Payload(VALUE, data)
        serialized = Serialized(data, ())
    else:
        with contained_refs() as refs:
            serialized = serialize(value)
    if serialized.size > home.inline_limit and (object_id := home.store(serialized)):
        return Payload(STORED, object_id, tuple(refs), serialized.size)
    if serialized.buffers:
        return Payload(PACKED, serialized.to_bytes(), tuple(refs))
    return Payload(VALUE, bytes(serialized.head), tuple(refs))


def with_source(payload: Payload, source: str) -> Payload:
    """Return the payload of a stored value for a reader that fetches it from this host."""
    return Payload(payload.kind, payload.data, payload.refs, payload.size, source)


def pickled(value: object) -> tuple[bytes, tuple[bytes, ...]]:
    """Pickle a value; return its bytes and the ids of the references in it."""
    if type(value) in _PLAIN:
        return pickle.dumps(value, _PROTOCOL), ()
    with contained_refs() as refs:
        data = pickling.dumps(value)
    return data, tuple(refs)


def unpickled(data: bytes, home: Home) -> Any:
    """Unpickle a value; the references in it belong to `home`."""
    return load_for(home, pickle.loads, data)


def from_payload(payload: Payload, home: Home) -> Any:
    """Return the value of a payload, or raise its error."""
    if payload.kind == ERROR:
        raise error_of(payload, home)
    if payload.kind == VALUE:
        return unpickled(payload.data, home)
    if payload.kind == STORED:
        return load_for(home, lambda each: home.load(each.data, each.source), payload)
    return load_for(home, deserialize_object, memoryview(payload.data))


def to_error(error: BaseException, where: str) -> Payload:
    """Pickle an error with its traceback; `where` names the task, the process and the host.

    An error that another process could not unpickle becomes a TaskError with its text, and so
    does an exit, which must not end the program that reads it.
    """
    text = "".join(traceback.format_exception(type(error), error, _of_user(error)))
    text = f"{where}\n{text}"
    if isinstance(error, Exception):
        try:
            data, refs = pickled(error)
            if isinstance(pickle.loads(data), type(error)):  # noqa: S301 - made in this process
                return _error_payload(data, text, f"{where}: {_summary(error)}", refs)
        except Exception as problem:  # noqa: BLE001 - whatever the error's own code raises
            text = f"{text}\nThis error cannot be pickled: {problem!r}"
    return error_payload(TaskError(f"{where}: {_summary(error)}"), text)


def error_payload(error: Exception, text: str = "") -> Payload:
    """Pickle an error of this package."""
    return _error_payload(pickling.dumps(error), text, str(error))


def _error_payload(error: bytes, text: str, summary: str, refs: tuple[bytes, ...] = ()) -> Payload:
    """Pickle the text outside of the error: the reader may lack the module of its class.

    Errors are never in the store: of a large one its text alone is kept.
    """
    text, summary = _shortened(text), _shortened(summary)
    if len(error) > _LARGEST_ERROR:
        note = f"This error takes {len(error)} bytes, and more than {_LARGEST_ERROR} are not sent."
        error, text, refs = pickling.dumps(TaskError(summary)), f"{text}\n{note}", ()
    return Payload(ERROR, pickle.dumps((error, text, summary), _PROTOCOL), refs)


def _shortened(text: str) -> str:
    left_out = len(text) - _MOST_CHARS
    if left_out <= 0:
        return text
    half = _MOST_CHARS // 2
    return f"{text[:half]} [{left_out} characters are left out] {text[-half:]}"


def _summary(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def error_of(payload: Payload, home: Home | None) -> Exception:
    """Return a fresh copy of the error in a payload, with the remote traceback as its cause.

    The references in it belong to `home`; an error of another program has none.
    """
    error: Exception
    data, text, summary = pickle.loads(payload.data)  # noqa: S301 - of this user's own processes
    try:
        error = unpickled(data, home) if home else pickle.loads(data)  # noqa: S301
    except Exception as problem:  # noqa: BLE001 - whatever importing or making the error raises
        error = TaskError(summary)
        text = f"{text}\nThis error cannot be unpickled here: {problem!r}"
    if text:
        error.__cause__ = RemoteTraceback(text)
    return error


def error_texts(payload: Payload) -> tuple[str, str]:
    """Return the last line of an error in a payload, and its traceback, without unpickling it."""
    _, text, summary = pickle.loads(payload.data)  # noqa: S301 - of this user's own processes
    return summary, text


def _of_user(error: BaseException) -> TracebackType | None:
    """Return the error's traceback without the frames of this package that called the user."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return trace


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).startswith(f"{__package__}.")
