"""The request that this code runs for: its id and the client's address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The id and the client's address of a request; both empty outside of requests."""

    request_id: str = ""
    address: str = ""


_NO_REQUEST = RequestContext()
_CURRENT: ContextVar[RequestContext | None] = ContextVar("request", default=None)


def current_request() -> RequestContext:
    """Return the request that this code runs for; an empty one outside of requests."""
    return _CURRENT.get() or _NO_REQUEST


@contextmanager
def in_request(request_id: str, address: str) -> Iterator[None]:
    """Run the block, and the asyncio tasks that it starts, as part of a request."""
    token = _CURRENT.set(RequestContext(request_id, address))
    try:
        yield
    finally:
        _CURRENT.reset(token)
