"""`connect`: a program outside of a job gets the job's meshes through the portal.

    with connect("ppo") as meshes:
        procs = meshes.trainers.spawn_procs(per_host={"gpus": 8})

Monarch's own classes; this package is the way that their bytes take.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from monarch_client.attaching.loss import LossAlarm
from monarch_client.gateway import opening
from monarch_client.gateway.data_links import WORKER
from monarch_client.gateway.errors import OneJobError
from monarch_client.gateway.meshes import Meshes
from monarch_client.gateway.opening import Opening
from monarch_client.gateway.proxy_connection import ProxyConnection
from monarch_client.gateway.synced_session import Folders, SyncedSession, folders_of
from monarch_client.gateway.versions import refuse_others
from monarch_client.runner.base import process_end

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SHUTDOWN_S = 1.0


class Pickles(TypedDict, total=False):
    """The values that may be pickled with `proxy=True`: arguments, and results."""

    pickle: bool
    pickle_results: bool


class Connection(SyncedSession[Meshes]):
    """A session with Monarch's own classes: one for the life of the process."""

    kind = WORKER

    def __init__(
        self, opened: Opening, away_limit_s: float | None, folders: Folders | None = None
    ) -> None:
        self._alarm = LossAlarm()
        super().__init__(opened, away_limit_s, folders)

    @property
    def is_attached(self) -> bool:
        """Whether Monarch of this process belongs to the job, which lasts as long as it does."""
        return self._is_attached

    def _check(self, hello: dict[str, Any]) -> None:
        refuse_others(hello)

    def _attach(self, hello: dict[str, Any]) -> None:
        self.meshes = Meshes(self.job, hello)
        # Monarch is a large import, and refusals do not need it.
        from monarch_client.attaching.meshes import join  # noqa: PLC0415

        self._is_attached = True
        join(self._link.address)
        # Again: Monarch has registered the end of its client, which would wait for a closed link.
        process_end.arm(self, self.close)

    def _leave(self) -> None:
        try:
            if self._is_attached:
                _leave_monarch(self.meshes, is_lost=self._alarm.error is not None)
        finally:
            self._alarm.close()

    def _end_procs(self) -> None:
        for mesh in self.meshes.attached().values():
            mesh.spawned.end()

    def _drop_modules(self, changed: Sequence[str]) -> None:
        for mesh in self.meshes.attached().values():
            mesh.spawned.drop_modules(changed)

    def _lose(self, error: Exception) -> None:
        self._alarm.report(error)

    def _lose_hosts(self, error: Exception) -> None:
        self._alarm.report(error)


_lock = threading.Lock()
_connection: Connection | None = None


@overload
def connect(
    job: str | int | None = None,
    project: str | None = None,
    *,
    away_limit_s: float | None = None,
    sync: Folders | bool | None = None,
    proxy: Literal[False] = False,
) -> Connection: ...


@overload
def connect(
    job: str | int | None = None,
    project: str | None = None,
    *,
    away_limit_s: float | None = None,
    sync: Folders | bool | None = None,
    proxy: Literal[True],
    **pickles: Unpack[Pickles],
) -> ProxyConnection: ...


def connect(
    job: str | int | None = None,
    project: str | None = None,
    *,
    away_limit_s: float | None = None,
    sync: Folders | bool | None = None,
    proxy: bool = False,
    **pickles: Unpack[Pickles],
) -> Connection | ProxyConnection:
    """Open a session in a running job, a number or a name, and attach Monarch to its workers.

    Without `job`: that of `mportal attach`. The portal and the token are those of `mportal login`
    or of MPORTAL_URL and MPORTAL_TOKEN. `away_limit_s` is how long the network may be away; by
    default what the portal allows. `sync`: folders whose code all nodes get before, as by
    `mportal sync`; by default that of `mportal dev --workdir`. `proxy`: return mesh proxies, which
    need no torchmonarch here; `pickle` and `pickle_results` are for these
    (docs/reference/proxies.md).
    OneJobError: this process has connected before. Other AttachErrors, ClientErrors: no session.
    """
    chosen = job or os.environ.get(opening.JOB_VARIABLE, "")
    if proxy:
        with opening.opened_session(chosen, project) as opened:
            return ProxyConnection(opened, away_limit_s, folders_of(sync), **pickles)
    return _connect_monarch(chosen, project, away_limit_s, folders_of(sync))


def _connect_monarch(
    job: str | int, project: str | None, away_limit_s: float | None, folders: Folders | None
) -> Connection:
    global _connection  # noqa: PLW0603 - Monarch has one client a process
    with _lock:
        if _connection is not None:
            raise OneJobError(
                f"This process is connected to {_connection.job}, and Monarch cannot attach it to "
                "another job. Use a process for each job."
            )
        with opening.opened_session(job, project) as opened:
            _connection = Connection(opened, away_limit_s, folders)
        return _connection


def _leave_monarch(meshes: Meshes, *, is_lost: bool) -> None:
    """Stop the program's procs and Monarch's client, which would wait for the workers at exit."""
    import monarch.actor  # noqa: PLC0415

    from monarch_client.attaching.meshes import stop  # noqa: PLC0415

    attached: dict[str, Any] = meshes.attached()
    if not is_lost:
        stop(attached)
    with suppress(Exception):
        monarch.actor.shutdown_context(host_timeout=0.3).get(timeout=_SHUTDOWN_S)
