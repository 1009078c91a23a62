"""A host of a driver: its reports go to the executors, and to the connections of tasks."""

from __future__ import annotations

from collections.abc import Callable

from monarch_client.context.driver.executors import ExecutorPool, describe_status
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.task_connections import Requests, TaskConnections
from monarch_client.context.hosting.link import HostLink


class AttachedHost:
    """The receiver of one host's reports. `attach` gives it the link to the host."""

    def __init__(self, pool: ExecutorPool, on_lost: Callable[[str], None]) -> None:
        self._pool = pool
        self._on_lost = on_lost
        self._connections: TaskConnections

    def attach(self, link: HostLink, objects: ObjectTable, requests: Requests) -> None:
        """Handle the requests of tasks on the host."""
        self._connections = TaskConnections(link, objects, requests)

    def on_calls(self, executor: int, data: bytes) -> None:
        """Handle what an executor sent about its calls."""
        self._pool.on_calls(executor, data)

    def on_ended(self, executor: int, status: int) -> None:
        """Handle the end of an executor."""
        self._pool.on_ended(executor, describe_status(status))

    def on_request(self, connection: int, data: bytes) -> None:
        """Handle what a task sent on a connection of its own."""
        self._connections.on_request(connection, data)

    def on_disconnected(self, connection: int) -> None:
        """Handle the end of a task's connection."""
        self._connections.on_disconnected(connection)

    def on_lost(self, reason: str) -> None:
        """Handle the end of the host."""
        self._connections.lose_all()
        self._on_lost(reason)
