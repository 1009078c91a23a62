"""Google Cloud: one service account, as the application's default credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from jobs.backends.clouds.files import PrivateHome
from jobs.errors import InvalidCloudError

FIELDS = ("file",)
_FILE = ".config/gcloud/application_default_credentials.json"
_NAME = "default"
_WANTED = ("project_id", "private_key_id", "private_key", "client_email", "token_uri")


def add(home: PrivateHome, content: Mapping[str, str], allow_exec: bool) -> list[str]:  # noqa: FBT001
    """Store a service account's key file in place of the one before."""
    account = _parsed(content.get("file", ""))
    kind = account.get("type")
    if kind == "external_account" and allow_exec:
        home.write(_FILE, json.dumps(account, indent=2))
        return [_NAME]
    if kind != "service_account":
        shown = repr(kind[:40]) if isinstance(kind, str) else "missing"
        raise InvalidCloudError(
            "This is not the key file of a service account: its type must be service_account, and "
            f"is {shown}. Other kinds may run programs on the portal's host or name files there."
        )
    _check(account)
    home.write(_FILE, json.dumps(account, indent=2))
    return [_NAME]


def remove(home: PrivateHome, name: str) -> bool:
    """Forget the account."""
    if name != _NAME or not home.read(_FILE):
        return False
    home.remove(_FILE)
    return True


def listed(home: PrivateHome) -> list[tuple[str, str]]:
    """List the account, if there is one."""
    text = home.read(_FILE)
    if not text:
        return []
    account = _parsed(text)
    return [(_NAME, f"{account.get('client_email', '')} in {account.get('project_id', '')}")]


def _parsed(text: str) -> dict[str, Any]:
    try:
        account = json.loads(text)
    except (ValueError, RecursionError):
        account = None
    if not isinstance(account, dict):
        raise InvalidCloudError("This is not the key file of a service account: it is no JSON.")
    return account


def _check(account: dict[str, Any]) -> None:
    for key in _WANTED:
        if not isinstance(account.get(key), str) or not account[key]:
            raise InvalidCloudError(f"The key file of the service account lacks {key}.")
    if "PRIVATE KEY" not in account["private_key"]:
        raise InvalidCloudError("private_key in the key file does not look like one.")
    host = urlsplit(account["token_uri"]).hostname or ""
    is_google = host == "googleapis.com" or host.endswith(".googleapis.com")
    if not is_google or not account["token_uri"].startswith("https://"):
        raise InvalidCloudError("token_uri in the key file is not an address of Google's.")
