"""Errors of mesh proxies.

ClientError
├── RemoteError              an exception of an actor, whose class is not known here
├── ProxyError               the process on the cluster refused the session
├── ResultExpiredError       the result was not fetched in time
└── ProxySessionLostError    the connection was away too long
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch_client.errors import ClientError
from monarch_client.runner.scripts.mportal_proxies.failures import rebuild

if TYPE_CHECKING:
    from monarch_client.runner.scripts.mportal_proxies.codec import Codec


class RemoteError(ClientError, RuntimeError):
    """An exception on the cluster: its type's name, its traceback there, and where it was raised.

    It is raised itself where the type is not imported here, and is the cause of the exception
    where it is. `rank` and `host` are known for calls to a single actor.
    """

    code = "remote_error"

    def __init__(
        self,
        message: str,
        *,
        type_name: str,
        traceback: str,
        rank: int | None = None,
        host: str | None = None,
    ) -> None:
        super().__init__(message)
        self.type_name = type_name
        self.traceback = traceback
        self.rank = rank
        self.host = host

    def __str__(self) -> str:
        """Return the type, the message, where it was raised, and the traceback."""
        where = f" (rank {self.rank} on {self.host})" if self.rank is not None else ""
        head = f"{self.type_name}: {super().__str__()}{where}"
        return f"{head}\n\n{self.traceback.rstrip()}" if self.traceback else head


class ProxyError(ClientError):
    """The process on the cluster that makes the calls refused the session."""

    code = "proxy_refused"


class ResultExpiredError(ClientError):
    """The result was kept for 10 minutes and expired before it was fetched. Repeat the call."""

    code = "result_expired"


class ProxySessionLostError(ClientError):
    """The connection to the job was lost for too long; what the session started has ended."""

    code = "session_lost"


def error_of(failure: Any, codec: Codec) -> Exception:
    """Return the exception that a failed call raises."""
    if not isinstance(failure, dict):
        return ResultExpiredError()
    name = failure["type"].replace("builtins:", "").replace(":", ".")
    remote = RemoteError(
        failure["message"],
        type_name=name,
        traceback=failure["traceback"],
        rank=failure["rank"],
        host=failure["host"],
    )
    error = rebuild(failure, codec)
    if error is None:
        return remote
    error.__cause__ = remote
    return error
