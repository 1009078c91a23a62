"""SkyPilot's errors as our kinds, recognized by the names of their classes. Never imports sky."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from monarch_client.skypilot.errors import SkyPilotError

COLOR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
ADVICE = re.compile(r"(\n|(?<=\.) )(To fix:|To enable access,|Run: sky ).*", re.DOTALL)
LONGEST_MESSAGE = 8000
AWAY = "SkyPilot's server does not answer."

KIND_OF_CLASS = {
    "NotSupportedError": "not_supported",
    "NotSupportedErrorForSpot": "not_supported",
    "APINotSupportedError": "version",
    "APIVersionMismatchError": "version",
    "ResourcesMismatchError": "mismatch",
    "InvalidClusterNameError": "invalid",
    "InvalidSkyPilotConfigError": "invalid",
    "InvalidTaskSpecError": "invalid",
    "ClusterDoesNotExist": "not_found",
    "VolumeNotFoundError": "not_found",
    "StorageBucketGetError": "not_found",
    "JobNotFoundError": "not_found",
    "ClusterNotUpError": "not_up",
    "ClusterOwnerIdentityMismatchError": "credentials",
    "CloudUserIdentityError": "credentials",
    "NoCloudAccessError": "credentials",
    "InvalidCloudCredentials": "credentials",
    "InvalidCloudConfigs": "credentials",
    "UserRequestRejectedByPolicy": "permission",
    "RestfulPolicyError": "permission",
    "PermissionDeniedError": "permission",
    "NoWorkspaceAccessError": "permission",
    "WorkspaceAmbiguousError": "permission",
    "ApiServerAuthenticationError": "permission",
    "ApiServerConnectionError": "server_away",
    "ServerTemporarilyUnavailableError": "server_away",
    "RequestCancelled": "cancelled",
    "RequestInterruptedError": "interrupted",
    "CommandError": "command",
    "ClusterSetUpError": "command",
    "FetchClusterInfoError": "command",
    "NetworkError": "command",
    "SSHConnectionError": "command",
    # Python's own, as SkyPilot raises them for a task that makes no sense.
    "ValueError": "invalid",
    "TypeError": "invalid",
    "AttributeError": "other",
    # requests' and urllib3's.
    "ConnectionError": "server_away",
    "ReadTimeout": "server_away",
    "ConnectTimeout": "server_away",
    "Timeout": "server_away",
    "ChunkedEncodingError": "server_away",
    "ProtocolError": "server_away",
    # httpx's, which sends folders; one of its classes has a name that SkyPilot uses as well.
    "ConnectError": "server_away",
    "ReadError": "server_away",
    "WriteError": "server_away",
    "CloseError": "server_away",
    "TransportError": "server_away",
    # aiohttp's.
    "ClientConnectionError": "server_away",
    "TimeoutError": "server_away",
    "ModuleNotFoundError": "version",
    "ImportError": "version",
}
NOT_ENABLED = re.compile(r"which (is|are) not enabled")
# What SkyPilot says with a bare RuntimeError or HTTP error.
KIND_OF_WORDS = (
    (re.compile(r"Failed to get request .*: 404|Request .* not found", re.DOTALL), "not_found"),
    (re.compile(r"\b40[13]\b.*(Unauthorized|Forbidden|[Aa]uthenticat)"), "permission"),
)


def without_color(text: str) -> str:
    """Return `text` without ANSI sequences, to show to people."""
    return COLOR.sub("", text).strip()


def without_commands(text: str) -> str:
    """Return a reason without the commands that SkyPilot advises, which users can't run."""
    return ADVICE.sub("", without_color(text)).strip()


def error_of(error: BaseException) -> SkyPilotError:
    """Convert an error that SkyPilot, or the connection to it, has raised."""
    if isinstance(error, SkyPilotError):
        return error
    names = [each.__name__ for each in type(error).__mro__]
    try:
        text = without_color(str(error))
    except Exception:  # noqa: BLE001 - some of SkyPilot's objects can't be shown
        text = ""
    detail: dict[str, Any] = {"type": names[0]}
    kind = _kind(error, names, text)
    if kind == "server_away":
        # Addresses, ports and retries mean nothing to its readers.
        detail["said"] = text[:LONGEST_MESSAGE]
        text = AWAY
    reasons = _reasons(getattr(error, "failover_history", None) or ())
    if reasons:
        detail["reasons"] = reasons
    return SkyPilotError(kind, (text or names[0])[:LONGEST_MESSAGE], detail)


def _kind(error: BaseException, names: list[str], text: str) -> str:
    if "ResourcesUnavailableError" in names:
        # With a history places were tried and were full; without one there is no such place.
        if getattr(error, "failover_history", None):
            return "no_capacity"
        return "credentials" if NOT_ENABLED.search(text) else "invalid"
    if any(name.startswith(("Storage", "Volume")) and name.endswith("Error") for name in names):
        return KIND_OF_CLASS.get(names[0], "command")
    for pattern, kind in KIND_OF_WORDS:
        if names[0] in {"RuntimeError", "HTTPError", "ClientError"} and pattern.search(text):
            return kind
    return next((KIND_OF_CLASS[name] for name in names if name in KIND_OF_CLASS), "other")


def _reasons(history: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(without_color(str(one)) for one in history))
