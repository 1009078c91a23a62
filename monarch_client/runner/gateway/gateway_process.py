"""The runner's side of the gateway's process on the head: starts it, restarts it, sends it news."""

from __future__ import annotations

import contextlib
import json
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
from monarch_client.runner.gateway.proxy_drivers import ProxySettings
from monarch_client.runner.gateway.settings import settings_of, write_settings
from monarch_client.runner.programs import environment
from monarch_client.runner.programs.runtime_files import extract_proxies
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
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from monarch_client.runner.gateway.head_process import main; main(sys.argv[2])"
)


class GatewayProcess:
    """The process: starts once it is wanted and the workers are ready; ends with the attempt.

    Its end never affects the job. All methods run on the main loop's thread.
    """

    def __init__(self, place: Place) -> None:
        # Called when the kernel has killed it for lack of memory.
        self.on_out_of_memory: Callable[[], None] = lambda: None
        self._place = place
        self._is_wanted = place.config.gateway
        self._versions: tuple[str, str] | None = None
        self._command: Command | None = None
        self._is_reported = False
        self._pause_s = _FIRST_PAUSE_S
        self._started_at = 0.0
        self._oom_kills = 0

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        return self._command.pid if self._command else None

    def request(self) -> None:
        """Start it, now or once the workers are ready, since a laptop wants to attach."""
        self._is_wanted = True
        self._start()

    def open(self, python: str, torchmonarch: str) -> None:
        """Start it if it is wanted: the workers are ready, and have these versions."""
        self._versions = (python, torchmonarch)
        self._start()

    def report_lost(self, rank: int) -> None:
        """Have laptops notified that the host of a rank is lost."""
        stdin = self._command.process.stdin if self._command else None
        if stdin is not None:
            # What is not read is lost with the process: a short line never fills the pipe.
            with contextlib.suppress(OSError):
                os.write(stdin.fileno(), json.dumps({"lost": rank}).encode() + b"\n")

    def _start(self) -> None:
        place = self._place
        is_due = self._is_wanted and self._versions is not None and self._command is None
        if not is_due or not place.config.is_monarch or place.children.is_ending:
            return
        assert self._versions is not None  # noqa: S101 - for the type checker
        file = place.folder.state / "gateway.json"
        self._oom_kills = oom_kills()
        self._started_at = time.monotonic()
        try:
            python = environment.python_of(place)
            proxies = self._proxy_settings(python)
            write_settings(file, settings_of(place.config, python, self._versions, proxies))
            self._command = place.children.start(
                [sys.executable, "-I", "-S", "-c", _START, str(_ROOT), str(file)],
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

    def _proxy_settings(self, python: str) -> ProxySettings:
        """Return how drivers of mesh proxies are started: as the job's driver is."""
        folder = self._place.folder
        extract_proxies(folder)
        env = environment.driver_environment(self._place)
        # The exception that ends the job's own driver is reported there, and no other.
        for variable in ("MPORTAL_REPORT_FILE", "MPORTAL_WATCH_FILE"):
            env.pop(variable, None)
        argv = [python, "-m", "mportal_proxies"]
        return ProxySettings(argv, env, str(folder.workdir), str(folder.state))

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
            self._pause_s = _FIRST_PAUSE_S
        if not self._is_reported:
            self._is_reported = True
            self._place.recorder.remark(
                f"The process that connects laptops is started again: {why}"
            )
        self._place.loop.call_later(self._pause_s, self._start)
        self._pause_s = min(self._pause_s * 2, _LAST_PAUSE_S)
