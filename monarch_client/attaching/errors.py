"""The errors of a program that attaches to workers. Imports no monarch.

AttachError                      attach_failed
├── UnknownJobError              unknown_job
├── MonarchInUseError            monarch_in_use       this process uses Monarch in another way
├── WorkersUnreachableError      workers_unreachable
├── SharedWorkersError           shared_workers       a call that would end workers of others
└── ConnectionLostError          connection_lost
    ├── SessionLostError         session_lost         no connection for longer than the limit
    └── HostLostError            host_lost            workers have ended
"""

from __future__ import annotations

from collections.abc import Sequence

from monarch_client.errors import ClientError


class AttachError(ClientError):
    """The program cannot attach to the workers."""

    code = "attach_failed"


class UnknownJobError(AttachError):
    """The project has no job of this name."""

    code = "unknown_job"


class MonarchInUseError(AttachError):
    """A process has one Monarch client, and this one uses it in another way already."""

    code = "monarch_in_use"


class WorkersUnreachableError(AttachError):
    """The workers do not answer."""

    code = "workers_unreachable"


class SharedWorkersError(AttachError):
    """Other programs may use these workers, which end with their job only."""

    code = "shared_workers"


class ConnectionLostError(AttachError):
    """The connection to the workers was lost. Attach again in a new process."""

    code = "connection_lost"


class SessionLostError(ConnectionLostError):
    """The workers could not be reached for longer than the limit. Attach again in a new process.

    `away_s` is how long they could not be reached.
    """

    code = "session_lost"

    def __init__(self, message: str = "", away_s: float = 0.0) -> None:
        super().__init__(message)
        self.away_s = away_s


class HostLostError(ConnectionLostError):
    """Hosts of the mesh have ended.

    `hosts` names them, by address or by rank; it is empty if all have.
    """

    code = "host_lost"

    def __init__(self, message: str = "", hosts: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.hosts = list(hosts)
