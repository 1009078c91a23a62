"""SkyPilot's exceptions in wire format: a class's name and its fields."""

from __future__ import annotations

from typing import Any


class SkyError(Exception):
    """An exception of SkyPilot's, or a built-in one, that the client is to raise."""

    def __init__(self, type_name: str, message: str, **attributes: Any) -> None:
        super().__init__(message)
        self.type_name = type_name
        self.message = message
        self.attributes = attributes

    def to_dict(self) -> dict[str, Any]:
        """Serialize the error as SkyPilot does."""
        return {
            "type": self.type_name,
            "message": self.message,
            "args": (self.message,),
            "attributes": self.attributes,
            "stacktrace": f"Traceback of the stub: {self.type_name}: {self.message}",
        }


class CancelledRequestError(Exception):
    """The request was cancelled: its work stops wherever it is."""


class HaltedRequestError(Exception):
    """The request's work broke off as if the server had died."""


def no_such_cluster(name: str) -> SkyError:
    """Return the error of a cluster that does not exist, as every verb but status words it."""
    return SkyError("ClusterDoesNotExist", f"Cluster '{name}' does not exist.")


def not_up(name: str, status: str, doing: str) -> SkyError:
    """Return the error of a cluster that is not UP, as the verbs that need live nodes word it."""
    return SkyError(
        "ClusterNotUpError",
        f"\x1b[31mTo {doing}, cluster '{name}' must be UP (currently {status}).\x1b[0m",
    )


def no_room(message: str, history: list[str]) -> SkyError:
    """Return the error of a launch without capacity.

    With an empty `history` nothing fits; else each location was tried and had no capacity.
    """
    return SkyError(
        "ResourcesUnavailableError",
        message,
        no_failover=False,
        failover_history=[RuntimeError(each) for each in history],
    )
