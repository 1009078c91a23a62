"""One process of a fleet: killed, stopped, continued and started again, by its own number."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from monarch_portal.embedded import child

PATIENCE_S = 20


@dataclass(slots=True)
class Member:
    """A production command as a process of its own, whose output goes to a log of its own."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: child.Process | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the command anew."""
        program = child.Program(self.argv, self.log, env=self.environment)
        self.process = child.start(program)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self.process is not None, f"{self.name} was never started"
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait(PATIENCE_S)

    def stop(self) -> None:
        """Send SIGSTOP: the process hangs, with all its connections open."""
        self.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Send SIGCONT."""
        self.signal(signal.SIGCONT)

    def end(self) -> int:
        """Send SIGTERM and return the exit code; SIGKILL if the process does not end."""
        if self.process is None:
            return 0
        self.go_on()
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(PATIENCE_S)
        self.kill()
        return -signal.SIGKILL
