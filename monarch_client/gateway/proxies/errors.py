"""The errors of mesh proxies, beside those of `monarch_client.attaching.errors`.

ClientError
├── RemoteError            remote_error      an exception on the cluster, if not raised as its type
├── ResultExpiredError     result_expired
└── AttachError
    └── ProxyError         proxy_refused     the process on the cluster refused the session
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch_client.attaching.errors import AttachError
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


class ProxyError(AttachError):
    """The process on the cluster that makes the calls refused the session."""

    code = "proxy_refused"


class ResultExpiredError(ClientError):
    """The result was not fetched in 10 minutes, or too many waited before it. Repeat the call."""

    code = "result_expired"


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
