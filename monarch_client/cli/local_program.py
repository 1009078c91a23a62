"""The program of mportal attach and dev on this machine, which ends with the command.

The process groups of a terminal reach it as they are: Ctrl-C is its own business.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from monarch_client.runner.base import process_end
from monarch_client.runner.base.process_tree import (
    become_subreaper,
    descendants,
    reap_others_until_end_of,
    signal_all,
)

# Short: the sender of a signal often kills after ten seconds, and a job has to be ended as well.
GRACE_S = 5.0
_LOOK_S = 0.05


class LocalProgram:
    """A program, and all processes that it starts."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv = list(argv)
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._number = signal.SIGTERM

    def run(self) -> int:
        """Run it to its end, and return its exit code as a shell counts it.

        OSError: it cannot be started. A signal to this command ends it. KeyboardInterrupt: that
        was SIGINT, and no one typed Ctrl-C.
        """
        # Processes whose parents have ended belong to it all the same.
        become_subreaper()
        with process_end.ending(self._end):
            with process_end.undisturbed():
                self._process = subprocess.Popen(self._argv, env=self._environment)
            code = self._wait(self._process)
            # What it has left in the background may stay.
            self._process = None
        return code if code >= 0 else 128 - code

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        while True:
            try:
                reap_others_until_end_of(process.pid)
                return process.wait()
            except KeyboardInterrupt:  # noqa: PERF203 - the wait goes on
                # The terminal has sent it to the program as well, which decides.
                if not _is_in_foreground():
                    self._number = signal.SIGINT
                    raise

    def _end(self) -> None:
        """End its processes: with a signal, and with SIGKILL after GRACE_S.

        A shell may have ended by the same signal, and its program not.
        """
        process = self._process
        if process is None:
            return
        # A link process or an executor has a session of its own, and ends with its program.
        below = [
            pid
            for pid in descendants(os.getpid())
            if pid != process.pid and _is_in_this_session(pid)
        ]
        deadline = time.monotonic() + GRACE_S
        try:
            for number in (self._number, signal.SIGCONT):
                signal_all(below, number)
                if process.poll() is None:
                    process.send_signal(number)
            while _is_running(process) and time.monotonic() < deadline:
                time.sleep(_LOOK_S)
        finally:
            signal_all(descendants(os.getpid()), signal.SIGKILL)
            process.kill()
            process.wait()


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None or bool(descendants(os.getpid()))


def _is_in_this_session(pid: int) -> bool:
    with suppress(OSError):
        return os.getsid(pid) == os.getsid(0)
    return False


def _is_in_foreground() -> bool:
    """Whether a terminal sends Ctrl-C to this process and the program."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
