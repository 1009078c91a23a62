"""Drive a job's meshes from outside of its cluster, through the portal. See `connecting`.

Importing this package imports neither monarch nor the packages of the extra `gateway`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from monarch_client import extras as _extras

if TYPE_CHECKING:
    from monarch_client.gateway.connecting import Connection as Connection
    from monarch_client.gateway.connecting import connect as connect
    from monarch_client.gateway.remote.compute import Compute as Compute
    from monarch_client.gateway.remote.compute import Image as Image
    from monarch_client.gateway.remote.job import RemoteJob as RemoteJob

_MODULES = {
    "Compute": "monarch_client.gateway.remote.compute",
    "Connection": "monarch_client.gateway.connecting",
    "connect": "monarch_client.gateway.connecting",
    "Image": "monarch_client.gateway.remote.compute",
    "RemoteJob": "monarch_client.gateway.remote.job",
}
__all__ = ["Compute", "Connection", "Image", "RemoteJob", "connect"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with _extras.named_extras():
            return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
