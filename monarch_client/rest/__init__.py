"""The portal from Python: `PortalClient`, one method an endpoint, and `Follower` for live logs.

A class is imported when it is first used: `rest.config` alone needs no HTTP.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monarch_client.rest.client import PortalClient
    from monarch_client.rest.stream import Changed, Disconnected, Follower, NewLines

__all__ = ["Changed", "Disconnected", "Follower", "NewLines", "PortalClient"]


def __getattr__(name: str) -> type:
    """Import one of the classes. AttributeError if there is none of this name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "client" if name == "PortalClient" else "stream"
    value: type = getattr(import_module(f"{__name__}.{module}"), name)
    return value
