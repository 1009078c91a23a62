"""The address of SkyPilot's API server: one named in the settings, or the portal's own."""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings

from monarch_client.skypilot.caller import CallerOptions


def directory() -> Path:
    """Return the directory of all that this installation keeps about SkyPilot."""
    return Path(settings.MPORTAL_HOME) / "skypilot"


def server_options() -> CallerOptions | None:
    """Return its address and login; None if SkyPilot is switched off or was never started."""
    if settings.MPORTAL_SKYPILOT == "off":
        return None
    home = directory() / "client"
    if settings.MPORTAL_SKYPILOT_ENDPOINT:
        token = settings.MPORTAL_SKYPILOT_TOKEN or None
        return CallerOptions(home, settings.MPORTAL_SKYPILOT_ENDPOINT, token)
    try:
        server = json.loads((directory() / "server.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    return CallerOptions(home, server["endpoint"], server.get("token"))
