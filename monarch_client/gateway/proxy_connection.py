"""A session in a job for a program without torchmonarch: mesh proxies through the portal."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from monarch_client.gateway.errors import host_lost
from monarch_client.gateway.link import Hooks, Link
from monarch_client.gateway.opening import Opening
from monarch_client.gateway.proxies import MeshesProxy, connect_proxies
from monarch_client.gateway.versions import refuse_other_python

log = logging.getLogger("monarch_client.gateway")

# The link reports the loss, with its reason, after the portal's own limit.
_LONGER_THAN_ANY_LIMIT_S = 3600.0


class ProxyConnection:
    """A session of this process in one job; there may be others. `close` ends it."""

    meshes: MeshesProxy

    def __init__(
        self,
        opened: Opening,
        away_limit_s: float | None,
        *,
        pickle: bool = False,
        pickle_results: bool = False,
    ) -> None:
        self.job = opened.job
        self.session = opened.session
        self._pickles = pickle, pickle_results
        self._folder = Path(tempfile.mkdtemp(prefix="mportal-"))
        self._hosts: dict[int, str] = {}
        self._is_closed = False
        self._is_open = False
        hooks = Hooks(self._lose, self._report_lost_hosts)
        self._link = Link(opened, self._folder, hooks, away_limit_s, kind="proxy")
        atexit.register(self.close)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def link_pid(self) -> int:
        """The id of the process that owns the network."""
        return self._link.pid

    def __enter__(self) -> MeshesProxy:
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
        atexit.unregister(self.close)
        try:
            if self._is_open:
                self.meshes.close()
        finally:
            self._link.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self) -> None:
        hello = self._link.open()
        if any(self._pickles):
            refuse_other_python(hello)
        self._hosts = {int(each["rank"]): str(each["host"]) for each in hello["workers"]}
        self._link.wait_until_ready()
        pickle, pickle_results = self._pickles
        self.meshes = connect_proxies(
            f"unix:{self._link.address.removeprefix('ipc://')}",
            away_limit_s=_LONGER_THAN_ANY_LIMIT_S,
            pickle=pickle,
            pickle_results=pickle_results,
        )
        self._is_open = True

    def _lose(self, error: Exception) -> None:
        if self._is_open:
            self.meshes.lose(error)

    def _report_lost_hosts(self, ranks: list[int]) -> None:
        # Calls to other hosts go on; those to the lost ones raise what the driver gets.
        log.error("%s", host_lost(self.job, ranks, self._hosts))
