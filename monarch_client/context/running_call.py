"""The call that a thread or coroutine of an executor runs now."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class RunningCall(NamedTuple):
    """A call by its id, and the name that its lines of output begin with."""

    id: bytes = b""
    name: str = ""


# Several calls of an actor run at once, each in its context.
_running: ContextVar[RunningCall] = ContextVar("running")
# For threads that calls start, which have no context of a call.
_latest = [RunningCall()]


def begin_call(call: bytes, name: str) -> None:
    """Note which call runs from now on in this context."""
    _latest[0] = RunningCall(call, name)
    _running.set(_latest[0])


def calling() -> bytes:
    """Return the id of the call that makes another one here; empty: it is not known to be one."""
    found = _running.get(None)
    return found.id if found else b""


def running_call() -> RunningCall:
    """Return the call that runs here: in a thread of the user's own, the latest one."""
    return _running.get(_latest[0])
