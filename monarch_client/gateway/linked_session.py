"""Open and end a session of a program: its link process and its private folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from monarch_client.attaching.folders import PrivateFolder
from monarch_client.gateway.errors import host_lost
from monarch_client.gateway.link import Hooks, Link
from monarch_client.gateway.opening import Opening
from monarch_client.runner.base import process_end

MeshesT = TypeVar("MeshesT")


class LinkedSession(ABC, Generic[MeshesT]):
    """A session of this process in one job. `close` ends it; so does the end of the process."""

    meshes: MeshesT
    # The kind of the link: what the head node connects it with.
    kind: str

    def __init__(self, opened: Opening, away_limit_s: float | None) -> None:
        self.job = opened.job
        self.session = opened.session
        self._folder = PrivateFolder(opened.note)
        self._hosts: dict[int, str] = {}
        self._is_attached = self._is_closed = False
        hooks = Hooks(
            self._lose, lambda ranks: self._lose_hosts(host_lost(self.job, ranks, self._hosts))
        )
        self._link = Link(opened, self._folder.path, hooks, away_limit_s, kind=self.kind)
        process_end.arm(self, self.close)
        try:
            hello = self._link.open()
            self._check(hello)
            self._hosts = {int(each["rank"]): str(each["host"]) for each in hello["workers"]}
            self._link.wait_until_ready()
            self._begin()
            self._attach(hello)
        except BaseException:
            self.close()
            raise

    @property
    def link_pid(self) -> int:
        """The id of the process that owns the network."""
        return self._link.pid

    @property
    def node_socket(self) -> Path:
        """The local socket of node streams, see `node_stream`."""
        return self._link.node_socket

    def __enter__(self) -> MeshesT:
        return self.meshes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop what this program spawned, and end the session. The workers go on."""
        if self._is_closed:
            return
        self._is_closed = True
        process_end.disarm(self)
        try:
            self._leave()
        finally:
            self._link.close()
            self._folder.remove()

    def _begin(self) -> None:
        """Do what comes before the program is attached."""

    @abstractmethod
    def _check(self, hello: dict[str, Any]) -> None:
        """Refuse workers of versions that this program cannot use. VersionMismatchError."""

    @abstractmethod
    def _attach(self, hello: dict[str, Any]) -> None:
        """Set `meshes`, whose bytes take the link, and `_is_attached`."""

    @abstractmethod
    def _leave(self) -> None:
        """Stop what this program spawned, if it was attached, before the link ends."""

    @abstractmethod
    def _lose(self, error: Exception) -> None:
        """Raise the loss of the session in the program. Called in the link's thread."""

    @abstractmethod
    def _lose_hosts(self, error: Exception) -> None:
        """Report hosts that the job has lost. Called in the link's thread."""
