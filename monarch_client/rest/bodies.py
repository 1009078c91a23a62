"""The bodies of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def spec_body(
    spec: str | Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a request's options for a specification: YAML unchanged, an object as JSON."""
    if isinstance(spec, str):
        own = {"Content-Type": "application/yaml", **(headers or {})}
        return {"content": spec.encode(), "headers": own}
    return {"json": {"spec": dict(spec)}, "headers": dict(headers or {})}


def batch_body(specs: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
    """Return the body of a request about several specifications."""
    return {"specs": [each if isinstance(each, str) else dict(each) for each in specs]}


def rerun_body(*, drop_deleted: bool) -> dict[str, bool] | None:
    """Return the body of a rerun; none without an option, for portals that do not know it."""
    return {"drop_deleted": True} if drop_deleted else None
