"""The future of a call on a mesh proxy."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class FutureProxy(Generic[R]):
    """The result of a call, which the cluster sends when it is there.

    It survives a lost connection: after a reconnect the result arrives.
    """

    def __init__(
        self, future: concurrent.futures.Future[R], cancel: Callable[[], None] | None = None
    ) -> None:
        self._future = future
        self._cancel = cancel

    def get(self, timeout: float | None = None) -> R:
        """Wait for the result. TimeoutError: it is not there in time; the call goes on.

        Raises the exception of the actor if its type is known here, else `RemoteError`.
        """
        if timeout is not None and not 0 <= timeout < math.inf:
            raise ValueError(f"invalid timeout {timeout}: expected a finite number of seconds")
        try:
            return self._future.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._future.done():  # the actor raised it
                raise
            raise TimeoutError(f"no result within {timeout:g} s; the call goes on") from None

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result, as `get()` does."""
        return self.get(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the call, and return its exception or None."""
        return self._future.exception(timeout)

    def done(self) -> bool:
        """Whether the result or the exception is there, or the call was canceled."""
        return self._future.done()

    def cancel(self) -> bool:
        """Give up the result; False: it is there already.

        An actor that works on the call goes on with it. To end it, stop its processes.
        """
        if not self._future.cancel():
            return False
        if self._cancel is not None:
            self._cancel()
        return True

    def cancelled(self) -> bool:
        """Whether the result was given up."""
        return self._future.cancelled()

    def as_asyncio(self) -> asyncio.Future[R]:
        """Return a future of the running event loop."""
        return asyncio.wrap_future(self._future)

    def __await__(self) -> Generator[Any, None, R]:
        """Wait for the result in an event loop."""
        return self.as_asyncio().__await__()
