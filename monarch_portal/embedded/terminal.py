"""The terminal in which a starting portal reports. Its log goes to a file from the start."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from monarch_portal.embedded.child import redirect_output

GO_ON = b"\0"


class Terminal:
    """The terminal from which the portal was started."""

    def __init__(self, fd: int, *, stays: bool) -> None:
        self._fd = fd
        self.stays = stays

    def say(self, text: str) -> None:
        """Show `text`, unless the terminal has been closed."""
        if self._fd >= 0:
            try:
                os.write(self._fd, f"{text}\n".encode())
            except OSError:
                self._fd = -1

    def all_is_well(self) -> None:
        """Report that the portal is up; the command that started it in the background returns."""
        if not self.stays and self._fd >= 0:
            os.write(self._fd, GO_ON)
            os.close(self._fd)
            self._fd = -1


def foreground_terminal(log: Path) -> Terminal:
    """Return this terminal; everything that is printed from now on goes to `log`."""
    terminal = Terminal(os.dup(1), stays=True)
    redirect_output(log)
    return terminal


def detached_terminal(log: Path) -> Terminal:
    """Go on in a fork of its own session, and speak through the process that was started.

    That process shows what it receives, and ends when `all_is_well`, or with the fork's failure.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        _relay(pid, reading)
    os.close(reading)
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    redirect_output(log)
    return Terminal(writing, stays=False)


def _relay(pid: int, reading: int) -> NoReturn:
    while text := os.read(reading, 4096):
        sys.stdout.write(text.removesuffix(GO_ON).decode(errors="replace"))
        sys.stdout.flush()
        if text.endswith(GO_ON):
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    os._exit(max(1, os.waitstatus_to_exitcode(status)))
