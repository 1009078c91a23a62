"""The processes of meshes on a node, as its kernel has them: how many have gone while it lives."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.loop import MainLoop

_PACE_S = 0.5


class WorkerProcs:
    """Looks at the children of a worker twice a second, on the main loop's thread."""

    def __init__(self, loop: MainLoop, worker: Callable[[], int | None]) -> None:
        # Called after each look in which something has gone.
        self.on_gone: Callable[[], None] = lambda: None
        self.gone = 0
        self._loop = loop
        self._worker = worker
        self._known: set[int] = set()
        self._is_over = False

    def start(self) -> None:
        """Look from now on."""
        self._look()

    def stop(self) -> None:
        """Look no more: whatever goes now is being ended."""
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
    """Return the children of a process; none where the kernel does not list them."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path("/proc", str(pid), "task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (thread / "children").read_text().split()))
    return found
