"""Azure: one service principal, as the files that `az login --service-principal` leaves.

SkyPilot reads them through the Azure CLI, and requires the token cache to exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from jobs.backends.clouds.files import PrivateHome
from jobs.errors import InvalidCloudError

FIELDS = ("subscription_id", "tenant_id", "client_id", "client_secret")
_PROFILE = ".azure/azureProfile.json"
_PRINCIPALS = ".azure/service_principal_entries.json"
_TOKENS = ".azure/msal_token_cache.json"
_NAME = "default"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SECRET = re.compile(r"[!-~]{8,256}")


def add(home: PrivateHome, content: Mapping[str, str], allow_exec: bool) -> list[str]:  # noqa: FBT001
    """Store a service principal in place of the one before."""
    values = {field: content.get(field, "").strip() for field in FIELDS}
    for field in FIELDS[:-1]:
        values[field] = values[field].lower()
        if not _ID.fullmatch(values[field]):
            raise InvalidCloudError(
                f"{field} must be an id such as 01234567-89ab-cdef-0123-456789abcdef.", field=field
            )
    if not _SECRET.fullmatch(values["client_secret"]):
        raise InvalidCloudError(
            "client_secret must be the value of a client secret.", field="client_secret"
        )
    # The profile makes the account the current one, so it comes last.
    home.write(_PRINCIPALS, json.dumps([_principal(values)]))
    home.write(_TOKENS, "{}")
    home.write(_PROFILE, json.dumps({"subscriptions": [_subscription(values)]}))
    return [_NAME]


def remove(home: PrivateHome, name: str) -> bool:
    """Delete the service principal and its tokens."""
    if name != _NAME or not home.read(_PROFILE):
        return False
    for file in (_PROFILE, _TOKENS, _PRINCIPALS):
        home.remove(file)
    return True


def listed(home: PrivateHome) -> list[tuple[str, str]]:
    """List the service principal, if there is one."""
    # The Azure CLI writes a byte order mark.
    text = home.read(_PROFILE).removeprefix("\ufeff")
    if not text:
        return []
    try:
        first = json.loads(text)["subscriptions"][0]
        return [(_NAME, f"{first['user']['name']} in subscription {first['id']}")]
    except (ValueError, LookupError, TypeError):
        return [(_NAME, "a profile that the portal did not write")]


def _principal(values: Mapping[str, str]) -> dict[str, str]:
    return {
        "client_id": values["client_id"],
        "tenant": values["tenant_id"],
        "client_secret": values["client_secret"],
    }


def _subscription(values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": values["subscription_id"],
        "name": values["subscription_id"],
        "state": "Enabled",
        "user": {"name": values["client_id"], "type": "servicePrincipal"},
        "isDefault": True,
        "tenantId": values["tenant_id"],
        "homeTenantId": values["tenant_id"],
        "environmentName": "AzureCloud",
        "managedByTenants": [],
    }
