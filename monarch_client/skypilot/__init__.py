"""The client of SkyPilot. `SkyPilotJob` is for programs without a portal.

Neither sky nor monarch is imported before `SkyPilotJob` is used, and sky only by a child.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from monarch_client import extras as _extras

if TYPE_CHECKING:
    from monarch_client.skypilot.job import SkyPilotJob as SkyPilotJob

__all__ = ["SkyPilotJob"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        with _extras.named_extras():
            return getattr(importlib.import_module("monarch_client.skypilot.job"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
