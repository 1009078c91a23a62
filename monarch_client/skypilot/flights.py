"""A question to SkyPilot on its way: who waits for its answer, and how long the answer keeps."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from monarch_client.skypilot.errors import SkyPilotError, StillBusyError

# An answer that was not taken yet waits this long for its caller to come back.
KEEP_S = 30.0


@dataclass(slots=True, eq=False)
class Flight:
    """One call, joined by all who ask the same while it is under way."""

    number: int
    name: str
    request: bytes
    began_at: float = field(default_factory=time.monotonic)
    arrived_at: float | None = None
    # The child has read it: from here on asking another one could do it twice.
    is_taken_on: bool = False
    is_picked_up: bool = False
    _arrival: threading.Event = field(default_factory=threading.Event)
    _value: Any = None
    _error: SkyPilotError | StillBusyError | None = None

    def arrive(self, value: Any, error: SkyPilotError | StillBusyError | None = None) -> None:
        """Note the answer. A second one is ignored."""
        if self.arrived_at is None:
            self._value, self._error = value, error
            self.arrived_at = time.monotonic()
            self._arrival.set()

    def wait(self, patience_s: float) -> bool:
        """Whether the answer is there, after waiting for it."""
        return self._arrival.wait(patience_s)

    def take(self) -> Any:
        """Take the answer, or raise its error."""
        self.is_picked_up = True
        if isinstance(self._error, StillBusyError):
            raise StillBusyError(self._error.name)
        if self._error is not None:
            # Each waiting thread raises its own: a traceback grows where it is raised.
            raise SkyPilotError(self._error.kind, self._error.message, self._error.detail)
        return self._value

    def serves(self, fresh_s: float) -> bool:
        """Whether a new call can have this answer, rather than make a new request."""
        if self.arrived_at is None:
            return True
        age_s = time.monotonic() - self.arrived_at
        return age_s <= fresh_s or (not self.is_picked_up and age_s <= KEEP_S)

    @property
    def is_stale(self) -> bool:
        """Whether the answer is too old for any call."""
        return self.arrived_at is not None and time.monotonic() - self.arrived_at > KEEP_S


def request_of(number: int, name: str, args: Mapping[str, Any]) -> bytes:
    """Encode a call as the line that a child reads."""
    return json.dumps({"id": number, "call": name, "args": args}).encode()


def key_of(name: str, args: Mapping[str, Any]) -> str:
    """Return the key of a call, which equal calls share."""
    return json.dumps([name, args], sort_keys=True)
