"""The errors of calls to SkyPilot, as the rest of the portal sees them. Never imports sky.

SkyPilotError     SkyPilot, or the way to it, said no; `kind` says what to do about it
StillBusyError    no answer yet; the question stays asked, ask again shortly
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# What each kind means for the caller.
KINDS: Final[dict[str, str]] = {
    "no_capacity": "every candidate was tried and none had room; later may help",
    "not_supported": "the place cannot do what was requested",
    "invalid": "the task itself is wrong, or fits no place that is enabled",
    "mismatch": "the cluster exists and is not what the task requests",
    "not_found": "nothing of this name or number exists",
    "not_up": "the cluster exists and is not up",
    "credentials": "the cloud refused its credentials, or none is enabled",
    "permission": "SkyPilot's server, or its policy, refused the caller",
    "server_away": "SkyPilot's server did not answer; it is unknown whether it took the call",
    "version": "SkyPilot is missing here, or its server is of a version that does not fit",
    "cancelled": "the request was cancelled",
    "interrupted": "the call was cut off before its answer came; it may have been carried out",
    "command": "a command on the machines, or the way to them, failed",
    "other": "anything else",
}


class SkyPilotError(Exception):
    """SkyPilot said no. `message` is one for people, without color codes.

    `detail` is plain data: `type` (SkyPilot's class), and by kind `reasons` (a list of sentences).
    """

    def __init__(self, kind: str, message: str, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind if kind in KINDS else "other"
        self.message = message
        self.detail = dict(detail or {})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, to be sent to another process."""
        return {"kind": self.kind, "message": self.message, "detail": self.detail}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SkyPilotError:
        """Make the error from the data that another process sent."""
        return cls(str(data.get("kind")), str(data.get("message")), data.get("detail"))


class StillBusyError(Exception):
    """The answer is not there yet. The call goes on; the same call later picks the answer up."""

    def __init__(self, name: str) -> None:
        super().__init__(f"SkyPilot has not answered {name} yet.")
        self.name = name
