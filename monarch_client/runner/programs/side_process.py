"""A process of the runner's own beside the job's programs: started again when it ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.base.memory_pressure import oom_kills
from monarch_client.runner.base.process_tree import NODE_MARK
from monarch_client.runner.base.processes import exit_code_of
from monarch_client.runner.base.retry import Retry
from monarch_client.runner.vocabulary.verdicts import ended_with

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.processes import Command
    from monarch_client.runner.place import Place

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.2, 10.0
# After which a process counts as sound, so that its successor starts soon.
_SOUND_S = 30.0
# The bundle, or the source tree: -I leaves it out of the path.
_ROOT = Path(__file__).parents[3]
_START = (
    "import importlib, sys; sys.path.insert(0, sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(sys.argv[3])"
)


class SideProcess:
    """A process from its first start to the end of the attempt. Its end never affects the job.

    `module` has a `main`, whose argument is the settings file; `write_settings` writes that file
    before each start. All methods run on the main loop's thread.
    """

    def __init__(
        self, place: Place, what: str, module: str, write_settings: Callable[[Path], None]
    ) -> None:
        # Called when the kernel has killed it for lack of memory.
        self.on_out_of_memory: Callable[[], None] = lambda: None
        self._place = place
        self._what = what
        self._module = module
        self._write_settings = write_settings
        self._command: Command | None = None
        self._is_reported = False
        self._retry = Retry(_FIRST_PAUSE_S, _LAST_PAUSE_S)
        self._started_at = 0.0
        self._oom_kills = 0

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        return self._command.pid if self._command else None

    @property
    def stdin(self) -> int | None:
        """The descriptor of its standard input, which never blocks, while there is one."""
        stdin = self._command.process.stdin if self._command else None
        return stdin.fileno() if stdin is not None else None

    def start(self) -> None:
        """Start it. A repetition does nothing."""
        place = self._place
        if self._command is not None or place.children.is_ending:
            return
        # By the package of the module: state/gateway.json.
        file = place.folder.state / f"{self._module.split('.')[-2]}.json"
        self._oom_kills = oom_kills()
        self._started_at = time.monotonic()
        try:
            self._write_settings(file)
            self._command = place.children.start(
                [sys.executable, "-I", "-S", "-c", _START, str(_ROOT), self._module, str(file)],
                cwd=place.folder.state,
                env={**os.environ, NODE_MARK: str(place.folder.root)},
                # Its output is not for the user; a failure is reported with its last line.
                on_pieces=lambda _stream, _pieces: None,
                on_exit=self._exited,
                stdin=subprocess.PIPE,
            )
        except OSError as error:
            self._failed(f"it cannot be started: {error}")
            return
        stdin = self._command.process.stdin
        assert stdin is not None  # noqa: S101 - for the type checker: PIPE is set
        os.set_blocking(stdin.fileno(), False)

    def _exited(self, returncode: int) -> None:
        command, self._command = self._command, None
        if command is not None and command.process.stdin is not None:
            command.process.stdin.close()
        if self._place.children.is_ending:
            return
        if returncode == -signal.SIGKILL and oom_kills() > self._oom_kills:
            self.on_out_of_memory()
        words = f". {command.last_lines[-1]}" if command and command.last_lines else ""
        self._failed(f"it {ended_with(exit_code_of(returncode))}{words}")

    def _failed(self, why: str) -> None:
        """Start it again after a pause, and report the first failure in the log."""
        if time.monotonic() - self._started_at > _SOUND_S:
            self._retry.succeeded()
        if not self._is_reported:
            self._is_reported = True
            self._place.recorder.remark(f"{self._what} is started again: {why}")
        self._place.loop.call_later(self._retry.next_pause_s(), self.start)
