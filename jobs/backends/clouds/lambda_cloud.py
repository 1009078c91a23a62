"""Lambda Cloud: one API key."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.backends.clouds.files import PrivateHome
from jobs.errors import InvalidCloudError

FIELDS = ("api_key",)
_FILE = ".lambda_cloud/lambda_keys"
_NAME = "default"
_KEY = re.compile(r"[A-Za-z0-9._-]{16,256}")


def add(home: PrivateHome, content: Mapping[str, str], allow_exec: bool) -> list[str]:  # noqa: FBT001
    """Store an API key in place of the one before."""
    key = content.get("api_key", "").strip()
    if not _KEY.fullmatch(key):
        raise InvalidCloudError("api_key must be an API key of Lambda Cloud.", field="api_key")
    home.write(_FILE, f"api_key = {key}\n")
    return [_NAME]


def remove(home: PrivateHome, name: str) -> bool:
    """Delete the API key."""
    if name != _NAME or not home.read(_FILE):
        return False
    home.remove(_FILE)
    return True


def listed(home: PrivateHome) -> list[tuple[str, str]]:
    """List the API key, if there is one; every part of it is secret."""
    return [(_NAME, "an API key")] if home.read(_FILE) else []
