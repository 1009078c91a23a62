"""The process with Monarch's mesh admin: starts on demand, and restarts after a failure."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

from monarch_client.runner.base.memory_pressure import oom_kills
from monarch_client.runner.base.processes import exit_code_of
from monarch_client.runner.programs import environment
from monarch_client.runner.vocabulary.verdicts import ended_with

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.processes import Command
    from monarch_client.runner.place import Place

# Starts in an attempt, and failed ones among them; seconds from an end to the next start.
_MOST_STARTS, _MOST_VAIN = 5, 2
_PAUSE_S = 10.0


class MeshAdminProcess:
    """The admin process on rank 0, for all meshes of the attempt. It ends with the attempt."""

    def __init__(self, place: Place) -> None:
        # Called when the kernel has killed it for lack of memory.
        self.on_out_of_memory: Callable[[], None] = lambda: None
        self._place = place
        self._command: Command | None = None
        self._starts = self._vain = 0
        self._is_given_up = False
        self._next_at = 0.0
        self._oom_kills = 0

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        command = self._command
        return command.pid if command else None

    def keep(self) -> None:
        """Ensure that it runs. Safe from any thread; repeated calls do nothing."""
        if self._command is None and not self._is_given_up:
            self._place.loop.post(self._start)

    def _start(self) -> None:
        is_due = not self._is_given_up and time.monotonic() >= self._next_at
        if self._command is not None or not is_due or self._place.children.is_ending:
            return
        self._starts += 1
        self._oom_kills = oom_kills()
        place = self._place
        script = str(place.folder.state / "serve_mesh_admin.py")
        argv = [environment.python_of(place), script, str(place.folder.meshes)]
        try:
            self._command = place.children.start(
                [*argv, str(place.folder.admins), str(place.folder.watch)],
                cwd=place.folder.state,
                env=environment.monarch_environment(place),
                # Its output is not for the user; a failure is reported with its last line.
                on_pieces=lambda _stream, _pieces: None,
                on_exit=self._exited,
            )
        except OSError as error:
            self._vain += 1
            self._failed(f"it cannot be started: {error}")

    def _exited(self, returncode: int) -> None:
        last_lines = list(self._command.last_lines) if self._command else []
        self._command = None
        was_up = self._place.folder.admins.exists()
        # Another program may get its port.
        with contextlib.suppress(OSError):
            self._place.folder.admins.unlink()
        if self._place.children.is_ending:
            return
        if returncode == 0:
            # The driver has no meshes any more; another one may come.
            self._starts -= 1
        elif returncode == -signal.SIGKILL and oom_kills() > self._oom_kills:
            self.on_out_of_memory()
            self._is_given_up = True
            self._failed("the kernel ended it for lack of memory")
        else:
            self._vain += not was_up
            words = f". {last_lines[-1]}" if last_lines else ""
            self._failed(f"it {ended_with(exit_code_of(returncode))}{words}")

    def _failed(self, why: str) -> None:
        self._next_at = time.monotonic() + _PAUSE_S
        if self._starts >= _MOST_STARTS or self._vain >= _MOST_VAIN:
            self._is_given_up = True
        if self._is_given_up:
            what = "The meshes are not watched: the process of the mesh admin fails"
            self._place.recorder.remark(f"{what}, {why}")
