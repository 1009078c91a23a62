"""The job specification: parsed, checked and described here, for portal and client alike.

A name is imported when it is first used: a key's rule alone needs no YAML.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monarch_client.errors import InvalidSpecErrors, SpecError
    from monarch_client.spec.findings import SpecCode
    from monarch_client.spec.job_spec import JobSpec
    from monarch_client.spec.portal_block import LogPolicy, PortalBlock, Retry
    from monarch_client.spec.schema import json_schema

__all__ = [
    "InvalidSpecErrors",
    "JobSpec",
    "LogPolicy",
    "PortalBlock",
    "Retry",
    "SpecCode",
    "SpecError",
    "json_schema",
]
_MODULES = {
    "InvalidSpecErrors": "monarch_client.errors",
    "JobSpec": f"{__name__}.job_spec",
    "LogPolicy": f"{__name__}.portal_block",
    "PortalBlock": f"{__name__}.portal_block",
    "Retry": f"{__name__}.portal_block",
    "SpecCode": f"{__name__}.findings",
    "SpecError": "monarch_client.errors",
    "json_schema": f"{__name__}.schema",
}


def __getattr__(name: str) -> Any:
    """Import one of the names. AttributeError if there is none."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
