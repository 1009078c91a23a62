"""The stream of what a child yields, to a reader that may be slower than the child."""

from __future__ import annotations

import json
import queue
from typing import Any

from monarch_client.skypilot.connection import Connection
from monarch_client.skypilot.errors import SkyPilotError

# Pieces on their way that the reader has not taken yet: then the child stops reading as well.
WINDOW = 256
REPORT_AFTER = WINDOW // 4


class LineStream:
    """The pieces of one call, in order. For one reader."""

    def __init__(self, number: int, connection: Connection) -> None:
        self.connection = connection
        self._number = number
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._end: dict[str, Any] | None = None
        self._unreported = 0

    def get(self, timeout_s: float) -> Any:
        """Return the next piece; None at the end. queue.Empty: nothing within `timeout_s` seconds.

        SkyPilotError: what ended the call.
        """
        message = self._end or self._messages.get(timeout=max(timeout_s, 0.001))
        if "piece" in message:
            self._unreported += 1
            if self._unreported == REPORT_AFTER:
                self._send({"more": self._unreported})
                self._unreported = 0
            return message["piece"]
        self._end = message
        if message.get("error"):
            raise SkyPilotError.from_dict(message["error"])
        return None

    def close(self) -> None:
        """Read no further: the child ends the call."""
        if self._end is None:
            self._send({"close": True})

    def fail(self, error: SkyPilotError) -> None:
        """End the stream with an error."""
        self._messages.put({"error": error.to_dict()})

    def on_message(self, message: dict[str, Any]) -> None:
        """Handle a message of the child about this call."""
        if not message.get("taken"):
            self._messages.put(message)

    def _send(self, words: dict[str, Any]) -> None:
        self.connection.send(json.dumps({"id": self._number, **words}).encode())
