"""One supervised part of the portal: starting it, starting it again when it ends, stopping it."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from monarch_client.runner.base.retry import Retry
from monarch_portal.embedded import child
from monarch_portal.embedded.child import Process
from monarch_portal.embedded.errors import EmbeddedError

log = logging.getLogger(__name__)

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
# A part that ran this long has recovered: its next end is a first failure again. What cannot live
# ends sooner; what is killed now and then must not be kept away for longer each time.
STEADY_S = 10.0


@dataclass(slots=True)
class Part:
    """A process by its purpose. It is started by `start`, and stopped by `signals` in turn."""

    name: str
    start: Callable[[], Process]
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)
    patience_s: float = 10.0
    longest_delay_s: float = LONGEST_DELAY_S
    process: Process | None = None
    _started_at: float = field(default=0.0, init=False)
    _due_at: float = field(default=0.0, init=False)
    _retry: Retry = field(init=False)

    def __post_init__(self) -> None:
        self._retry = Retry(FIRST_DELAY_S, self.longest_delay_s)

    def begin(self) -> None:
        """Start the process. EmbeddedError if it can't be."""
        self._started_at = time.monotonic()
        self.process = self.start()

    def look(self) -> bool:
        """Start the process again if it has ended and its delay is over. Whether it was started."""
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return False
            self._note_end(code)
        if time.monotonic() < self._due_at:
            return False
        try:
            self.begin()
        except (EmbeddedError, OSError):
            # A full disk refuses with an OSError, and will have room again.
            log.exception("%s did not start", self.name, extra={"action": "part_failed"})
            self._postpone()
            return False
        return True

    def ask_to_end(self) -> None:
        """Send the first signal and don't wait."""
        if self.process is not None:
            self.process.send_signal(self.signals[0])

    def end(self) -> None:
        """Have the process end, by force at last. Safe to repeat."""
        if self.process is not None:
            child.stop(self.process, signals=self.signals, patience_s=self.patience_s)

    def _note_end(self, code: int) -> None:
        if time.monotonic() - self._started_at > STEADY_S:
            self._retry.succeeded()
        log.error(
            "%s ended, starting it again",
            self.name,
            extra={"action": "part_ended", "part": self.name, "exit_code": code},
        )
        self.process = None
        self._postpone()

    def _postpone(self) -> None:
        self._due_at = time.monotonic() + self._retry.next_pause_s()
