"""A session for streams of a job's nodes alone: it attaches to no workers."""

from __future__ import annotations

import threading
from typing import Any

from monarch_client.gateway.linked_session import LinkedSession
from monarch_client.gateway.opening import Opening
from monarch_client.runner.gateway.links import NODE


class NodeSession(LinkedSession[None]):
    """A session whose streams `node_stream` opens; `error` says why it was lost."""

    kind = NODE

    def __init__(self, opened: Opening, away_limit_s: float | None = None) -> None:
        self.error: Exception | None = None
        self.lost = threading.Event()
        super().__init__(opened, away_limit_s)

    @property
    def ranks(self) -> list[int]:
        """The ranks of the job's nodes."""
        return self._ranks

    def _check(self, hello: dict[str, Any]) -> None:
        self._ranks = sorted(int(each["rank"]) for each in hello.get("nodes", ()))

    def _attach(self, hello: dict[str, Any]) -> None:
        self.meshes = None

    def _leave(self) -> None:
        """Leave nothing: the end of a stream ends what it started."""

    def _lose(self, error: Exception) -> None:
        self.error = error
        self.lost.set()

    def _lose_hosts(self, error: Exception) -> None:
        """Report nothing: the streams of a lost host end by themselves."""
