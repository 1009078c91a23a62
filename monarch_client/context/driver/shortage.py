"""Warnings about calls that wait for resources which actors keep, perhaps for ever."""

from __future__ import annotations

import logging

from monarch_client.context.driver.actors import Actors
from monarch_client.context.driver.tasks import Tasks
from monarch_client.context.hosting.loop import Loop

log = logging.getLogger("monarch_client.context")
# What waits at two checks is reported, once.
CHECK_EACH_S = 5.0
_MOST_REPORTED = 100


class Shortage:
    """The actors and tasks that waited at the last check."""

    def __init__(self, loop: Loop, actors: Actors, tasks: Tasks) -> None:
        self._loop = loop
        self._actors = actors
        self._tasks = tasks
        self._waited: dict[object, str] = {}
        self._reported: set[object] = set()

    def watch(self) -> None:
        """Check from now on, with the loop's lock."""
        self._loop.call_later(CHECK_EACH_S, self._check)

    def _check(self) -> None:
        waiting = {**self._actors.waiting_texts(), **self._tasks.starved_texts()}
        for each, text in waiting.items():
            is_new = each in self._waited and each not in self._reported
            if is_new and len(self._reported) < _MOST_REPORTED:
                self._reported.add(each)
                log.warning(text)
        self._waited = waiting
        self.watch()
