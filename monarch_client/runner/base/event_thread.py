"""A thread with an asyncio loop that runs one coroutine and the tasks that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable, Coroutine


class EventThread:
    """The thread; its loop exists before `start` runs it."""

    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.loop = asyncio.new_event_loop()
        self._main = main
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)

    def start(self) -> None:
        """Run the coroutine; once."""
        self._thread.start()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have `function` called on the loop. After the end: nothing happens."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """Cancel what still runs, and wait for it."""
        self.call(self._cancel_all)
        if self._thread.is_alive():
            self._thread.join()
        self.loop.close()

    def _run(self) -> None:
        # Objects of asyncio belong, until Python 3.9, to the loop of the thread that makes them.
        asyncio.set_event_loop(self.loop)
        for last in (self._main, self._others_end):
            with contextlib.suppress(asyncio.CancelledError):
                self.loop.run_until_complete(last())
        self.loop.close()

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()

    async def _others_end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # Connections report their ends in the loop's next iteration.
        await asyncio.sleep(0)
