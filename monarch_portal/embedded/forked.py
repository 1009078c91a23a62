"""A part of the portal as a fork of the supervisor.

The supervisor has imported everything and started nothing: its forks share that memory and start at
once. It has no threads and no connections, so there is nothing that a fork could break.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from monarch_portal.embedded import child

PR_SET_NAME = 15
_libc = ctypes.CDLL(None, use_errno=True)


class Fork:
    """One forked process, with the methods of `subprocess.Popen` that a supervisor needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code; TimeoutExpired after `timeout` seconds."""
        deadline = time.monotonic() + timeout if timeout is not None else None
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(0.01)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal; nothing if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def fork(name: str, run: Callable[[], None], log: Path) -> Fork:
    """Run `run` in a fork of this process called `mportal-<name>`, its output appended to `log`."""
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Fork(pid)
    # From here on the child: whatever happens, it must not return into the parent's code.
    code = 1
    try:
        _become(name, parent, log)
        run()
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:  # noqa: BLE001 - the last resort of a process: say why it ends
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # a log on a full disk cannot be flushed
            os._exit(code)


def _become(name: str, parent: int, log: Path) -> None:
    """Shed what belongs to the parent: signals, terminal, output, name."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    child.signal_when_orphaned(signal.SIGTERM, parent)
    os.setsid()
    _libc.prctl(PR_SET_NAME, f"mportal-{name}".encode()[:15])
    child.redirect_output(log)
