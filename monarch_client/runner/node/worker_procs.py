"""Count the mesh processes on a node that exited while their worker lived."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.loop import MainLoop

_PACE_S = 0.5


class WorkerProcs:
    """A counter of exited children of a worker; it polls on the main loop's thread."""

    def __init__(self, loop: MainLoop, worker: Callable[[], int | None]) -> None:
        # Called after each poll that finds exited children.
        self.on_gone: Callable[[], None] = lambda: None
        self.gone = 0
        self._loop = loop
        self._worker = worker
        self._known: set[int] = set()
        self._is_over = False

    def start(self) -> None:
        """Poll from now on, twice a second, until the worker is gone."""
        self._look()

    def stop(self) -> None:
        """Stop counting: children that exit from now on are being ended on purpose."""
        self._is_over = True

    def _look(self) -> None:
        worker = self._worker()
        if self._is_over or worker is None:
            return
        there = children_of(worker)
        gone, self._known = len(self._known - there), there
        self._loop.call_later(_PACE_S, self._look)
        if gone:
            self.gone += gone
            self.on_gone()


def children_of(pid: int) -> set[int]:
    """Return the children of a process; an empty set if the kernel does not list them."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path("/proc", str(pid), "task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (thread / "children").read_text().split()))
    return found
