"""The errors of opening a session in a job. Those of its loss are in `attaching.errors`.

AttachError
├── SessionRefusedError      session_refused       the portal or the job's head node refuses
├── VersionMismatchError     version_mismatch      another Python or torchmonarch than the workers'
└── MonarchInUseError
    └── OneJobError          one_job               this process drives a job already
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monarch_client.attaching.errors import (
    AttachError,
    HostLostError,
    MonarchInUseError,
    SessionLostError,
)
from monarch_client.runner.gateway.links import NODE

_OF_PROGRAMS = " Its calls are never answered: start the program again, from its last checkpoint."


class SessionRefusedError(AttachError):
    """The portal refused the session."""

    code = "session_refused"


class VersionMismatchError(AttachError):
    """A version of Python or torchmonarch that differs from the workers'; Monarch would crash."""

    code = "version_mismatch"

    def __init__(self, package: str, here: str, workers: str, advice: str) -> None:
        self.package, self.here, self.workers = package, here, workers
        super().__init__(
            f"This program runs {package} {here}, the workers run {package} {workers}. {advice}"
        )


class OneJobError(MonarchInUseError):
    """A process drives one job: Monarch cannot attach it to another one."""

    code = "one_job"


def session_lost(away_s: float, reason: str, kind: str) -> SessionLostError:
    """Return the error of a session that was away for too long, or that the portal ended.

    `kind`: that of its link. A program calls actors of workers; a command has streams of nodes.
    """
    away = f"after {away_s:.0f} s away" if away_s >= 1 else "by the portal"
    why = f" ({reason.rstrip('.')})" if reason else ""
    advice = _OF_PROGRAMS
    if kind == NODE:
        advice = " Run the command again." if away_s >= 1 else ""
    return SessionLostError(f"The session was ended {away}{why}.{advice}", away_s)


def host_lost(job: str, ranks: Sequence[int], hosts: Mapping[int, str]) -> HostLostError:
    """Return the error of hosts that ended; `hosts` has the names of ranks."""
    names = [hosts.get(rank) or f"node {rank}" for rank in ranks]
    return HostLostError(
        f"{job} lost {', '.join(names)}. Calls to actors there are never answered: see "
        "`mportal why`, and start the program again once the job has recovered.",
        names,
    )
