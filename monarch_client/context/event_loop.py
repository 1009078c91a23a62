"""The event loop of an executor, in a thread of its own.

Whatever a coroutine raises is the outcome of its call: an exit or an interrupt that asyncio saw
would end the loop, and with it all later calls.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

# The result of a coroutine, and None or the error that it has raised.
Outcome = tuple[Any, BaseException | None]


class EventLoop:
    """Coroutines of calls, by the ids of the calls."""

    def __init__(self, on_exit: Callable[[SystemExit], None]) -> None:
        """Start the thread; `on_exit` handles an exit of what a call has left running."""
        self._on_exit = on_exit
        self._loop = asyncio.new_event_loop()
        # None: the coroutine waits for its first step.
        self._tasks: dict[bytes, asyncio.Task[Outcome] | None] = {}
        threading.Thread(target=self._run, daemon=True, name="loop").start()

    def start(
        self, call: bytes, coroutine: Coroutine[Any, Any, Any], on_end: Callable[[Outcome], None]
    ) -> None:
        """Run a coroutine after those that were started before; `on_end` gets its outcome."""
        self._tasks[call] = None
        self._loop.call_soon_threadsafe(self._begin, call, coroutine, on_end)

    def result(self, call: bytes, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine; return its result or raise its error. An interrupt cancels it."""
        outcome: Future[Outcome] = Future()
        self.start(call, coroutine, outcome.set_result)
        try:
            result, error = outcome.result()
        except BaseException:
            self.cancel(call)
            raise
        if error is not None:
            raise error
        return result

    def cancel(self, call: bytes) -> bool:
        """Cancel the coroutine of a call. Whether the call has one that has not ended."""
        if call not in self._tasks:
            return False
        self._loop.call_soon_threadsafe(self._cancel, call)
        return True

    def _cancel(self, call: bytes) -> None:
        if (task := self._tasks.get(call)) is not None:
            task.cancel()

    def _begin(
        self, call: bytes, coroutine: Coroutine[Any, Any, Any], on_end: Callable[[Outcome], None]
    ) -> None:
        def end(task: asyncio.Task[Outcome]) -> None:
            del self._tasks[call]
            # Cancelled before its first step, it has caught nothing.
            on_end((None, asyncio.CancelledError()) if task.cancelled() else task.result())

        task = self._tasks[call] = self._loop.create_task(_outcome_of(coroutine))
        task.add_done_callback(end)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            self._run_until_exit()

    def _run_until_exit(self) -> None:
        """Run the loop until something that a call has left running exits or is interrupted."""
        try:
            self._loop.run_forever()
        except SystemExit as error:
            self._on_exit(error)
        except KeyboardInterrupt as error:
            traceback.print_exception(error)


async def _outcome_of(coroutine: Coroutine[Any, Any, Any]) -> Outcome:
    try:
        return await coroutine, None
    except BaseException as error:  # noqa: BLE001 - it is the outcome of a call
        return None, error


def has_async_methods(klass: object) -> bool:
    """Whether a class has methods that are coroutines: then all its calls run on the loop."""
    return isinstance(klass, type) and bool(inspect.getmembers(klass, _is_async))


def _is_async(member: object) -> bool:
    return inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
