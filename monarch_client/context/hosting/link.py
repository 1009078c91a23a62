"""A host as a driver reaches it: processes by number, and bytes to and from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class HostEvents(Protocol):
    """The receiver of a host's reports."""

    def on_calls(self, executor: int, data: bytes) -> None:
        """Handle what an executor sent about its calls."""

    def on_ended(self, executor: int, status: int) -> None:
        """Handle the end of an executor, after all that it sent."""

    def on_request(self, connection: int, data: bytes) -> None:
        """Handle what a task sent on a connection of its own."""

    def on_disconnected(self, connection: int) -> None:
        """Handle the end of a task's connection."""

    def on_lost(self, reason: str) -> None:
        """Handle the end of the host, and of all its processes."""


class HostLink(Protocol):
    """A host. Executors have numbers of the driver's, connections those of the host."""

    def fork(self, executor: int, env: Mapping[str, str]) -> None:
        """Start an executor."""

    def send(self, executor: int, data: bytes) -> None:
        """Send calls to an executor."""

    def control(self, executor: int, data: bytes) -> None:
        """Send a request about calls to an executor."""

    def end(self, executor: int) -> None:
        """Let an executor end after the calls that it was sent."""

    def kill(self, executor: int) -> None:
        """Kill an executor, with the processes that it started."""

    def reply(self, connection: int, data: bytes) -> None:
        """Send an answer on a task's connection."""

    def disconnect(self, connection: int) -> None:
        """Close a task's connection."""

    def close(self) -> None:
        """End all processes."""


class StoreLink(Protocol):
    """The object store of a host, as the driver reaches it: see the methods of `HostStore`."""

    def adopt(self, object_id: bytes) -> None:
        """Make the driver the owner of an object."""

    def discard(self, object_id: bytes) -> None:
        """Drop the reference of an object's owner."""

    def forget_copy(self, object_id: bytes) -> None:
        """Free a copy of an object that was deleted on its own host."""

    def process_ended(self, holder: int) -> None:
        """Free what a holder had."""
