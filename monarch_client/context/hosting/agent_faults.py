"""Monarch's hook for faults that nothing handles, without the faults of a context's agents."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

log = logging.getLogger("monarch_client.context")


class AgentFaults:
    """The faults of agents, which must not end this program: their hosts are watched here.

    One hook of the process serves all contexts. It is recognized, since a program may set its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._hook: Callable[[Any], None] | None = None
        self._former: Callable[[Any], None]

    def ignore(self, monarch_actor: Any, name: str) -> None:
        """Ignore the faults of meshes that have this name, which is unique, in theirs."""
        with self._lock:
            self._names.add(name)
            former = monarch_actor.unhandled_fault_hook
            if former is self._hook:
                return

            def handle(failure: Any) -> None:
                if self._has(f"{failure.mesh_name} {failure}"):
                    log.info("An agent of a task context has ended: %s", failure.mesh_name)
                else:
                    former(failure)

            self._former, self._hook = former, handle
            monarch_actor.unhandled_fault_hook = handle

    def restore(self, monarch_actor: Any, name: str) -> None:
        """Ignore a name's faults no longer; after the last name, restore the program's hook."""
        with self._lock:
            self._names.discard(name)
            if not self._names and monarch_actor.unhandled_fault_hook is self._hook:
                monarch_actor.unhandled_fault_hook = self._former
                self._hook = None

    def _has(self, text: str) -> bool:
        with self._lock:
            return any(name in text for name in self._names)


# Monarch has one hook for a process.
AGENT_FAULTS = AgentFaults()
