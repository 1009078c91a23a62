"""A session in a job for a program without torchmonarch: mesh proxies through the portal."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from monarch_client.gateway.opening import Opening
from monarch_client.gateway.proxies import MeshesProxy, connect_proxies
from monarch_client.gateway.synced_session import Folders, SyncedSession
from monarch_client.gateway.versions import refuse_other_python

log = logging.getLogger("monarch_client.gateway")

# The link reports the loss, with its reason, after the portal's own limit.
_LONGER_THAN_ANY_LIMIT_S = 3600.0


_NO_RELOAD = ValueError(
    "reload is for programs with torchmonarch. With proxies, close this connection and connect "
    "again: the new one imports the new code."
)


class ProxyConnection(SyncedSession[MeshesProxy]):
    """A session with mesh proxies; a process may have several, in different jobs."""

    kind = "proxy"

    def __init__(
        self,
        opened: Opening,
        away_limit_s: float | None,
        folders: Folders | None = None,
        *,
        pickle: bool = False,
        pickle_results: bool = False,
    ) -> None:
        self._pickles = pickle, pickle_results
        super().__init__(opened, away_limit_s, folders)

    def _check(self, hello: dict[str, Any]) -> None:
        if any(self._pickles):
            refuse_other_python(hello)

    def _attach(self, hello: dict[str, Any]) -> None:
        del hello  # the driver of proxies names the meshes
        pickle, pickle_results = self._pickles
        self.meshes = connect_proxies(
            f"unix:{self._link.address.removeprefix('ipc://')}",
            away_limit_s=_LONGER_THAN_ANY_LIMIT_S,
            pickle=pickle,
            pickle_results=pickle_results,
        )
        self._is_attached = True

    def _leave(self) -> None:
        if self._is_attached:
            self.meshes.close()

    def _lose(self, error: Exception) -> None:
        if self._is_attached:
            self.meshes.lose(error)

    def _lose_hosts(self, error: Exception) -> None:
        # Calls to other hosts go on; those to the lost ones raise what the driver gets.
        log.error("%s", error)

    def _end_procs(self) -> None:
        raise _NO_RELOAD

    def _drop_modules(self, changed: Sequence[str]) -> None:
        raise _NO_RELOAD
