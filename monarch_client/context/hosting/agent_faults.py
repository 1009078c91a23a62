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
        self._reports: dict[str, Callable[[], None]] = {}
        self._hook: Callable[[Any], None] | None = None
        self._former: Callable[[Any], None]

    def take(self, monarch_actor: Any, name: str, report: Callable[[], None]) -> None:
        """Call `report` for the faults of meshes that have this name, which is unique, in theirs.

        They do not reach the program's hook.
        """
        with self._lock:
            self._reports[name] = report
            former = monarch_actor.unhandled_fault_hook
            if former is self._hook:
                return

            def handle(failure: Any) -> None:
                if report := self._report_of(f"{failure.mesh_name} {failure}"):
                    report()
                    log.info("An agent of a task context has ended: %s", failure.mesh_name)
                else:
                    former(failure)

            self._former, self._hook = former, handle
            monarch_actor.unhandled_fault_hook = handle

    def restore(self, monarch_actor: Any, name: str) -> None:
        """Take a name's faults no longer; after the last name, restore the program's hook."""
        with self._lock:
            self._reports.pop(name, None)
            if not self._reports and monarch_actor.unhandled_fault_hook is self._hook:
                monarch_actor.unhandled_fault_hook = self._former
                self._hook = None

    def _report_of(self, text: str) -> Callable[[], None] | None:
        with self._lock:
            return next((report for name, report in self._reports.items() if name in text), None)


# Monarch has one hook for a process.
AGENT_FAULTS = AgentFaults()
