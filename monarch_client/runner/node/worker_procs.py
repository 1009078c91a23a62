"""Report the mesh processes on a node that exited while their worker lived."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.loop import MainLoop

_PACE_S = 0.5
# Monarch starts a process of a mesh with this: base64 of JSON that has the name of its proc.
_BOOTSTRAP = b"HYPERACTOR_MESH_BOOTSTRAP_MODE="
# Of the names of exited processes, the latest.
_MOST_NAMES = 1000


class WorkerProcs:
    """A list of exited children of a worker; it polls on the main loop's thread."""

    def __init__(self, loop: MainLoop, worker: Callable[[], int | None]) -> None:
        # Called after each poll that finds exited children.
        self.on_gone: Callable[[], None] = lambda: None
        self.gone = 0
        # The names of their procs; None if this version of Monarch does not provide them.
        self.gone_names: list[str] | None = None
        self._loop = loop
        self._worker = worker
        # The name of each child by its process id; "" while it has none.
        self._known: dict[int, str] = {}
        self._is_over = False

    def start(self) -> None:
        """Poll twice a second from now on, until the worker has ended."""
        self._look()

    def stop(self) -> None:
        """Stop counting: children that exit from now on are being ended on purpose."""
        self._is_over = True

    def _look(self) -> None:
        worker = self._worker()
        if self._is_over or worker is None:
            return
        before = self._known
        self._known = {pid: before.get(pid) or proc_name_of(pid) for pid in children_of(worker)}
        if self.gone_names is None and any(self._known.values()):
            self.gone_names = []
        gone = [name for pid, name in before.items() if pid not in self._known]
        self._loop.call_later(_PACE_S, self._look)
        if gone:
            self.gone += len(gone)
            if self.gone_names is not None:
                self.gone_names = [*self.gone_names, *filter(None, gone)][-_MOST_NAMES:]
            self.on_gone()


def children_of(pid: int) -> set[int]:
    """Return the children of a process; an empty set if the kernel does not list them."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path("/proc", str(pid), "task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (thread / "children").read_text().split()))
    return found


def proc_name_of(pid: int) -> str:
    """Return the name of the proc that a process runs; "" if it is no process of a mesh."""
    # Whatever a Monarch of another version writes there.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for variable in Path("/proc", str(pid), "environ").read_bytes().split(b"\0"):
            if variable.startswith(_BOOTSTRAP):
                mode = json.loads(base64.b64decode(variable[len(_BOOTSTRAP) :]))
                return str(mode["Proc"]["proc_id"]["id"]["uid"])
    return ""
