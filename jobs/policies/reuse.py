"""Which jobs fit on a cluster that was kept, and after which endings one is worth keeping."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from jobs.statuses import StopReason

# Endings that say nothing against the machines.
_HEALTHY = frozenset(
    {
        StopReason.COMPLETED,
        StopReason.USER_CODE,
        StopReason.SETUP,
        StopReason.TIMEOUT,
        StopReason.CANCELLED_BY_USER,
        StopReason.BUDGET,
        StopReason.IDLE,
        StopReason.PREEMPTED,
        StopReason.PARENT,
        # One that speaks of the machines says so by another action.
        StopReason.LOG_POLICY,
    }
)


def leaves_healthy(reason: StopReason) -> bool:
    """Whether machines on which an attempt ended by `reason` can be trusted with another."""
    return reason in _HEALTHY


def fingerprint(spec: Mapping[str, Any], backend_name: str, num_nodes: int) -> str:
    """The same for two jobs that ask for the same machines; what runs on them does not count.

    `resources` are compared as they were written, the image among them.
    """
    asked = {
        "backend": backend_name,
        "num_nodes": num_nodes,
        "resources": spec.get("resources") or {},
        "volumes": spec.get("volumes") or {},
        "config": spec.get("config") or {},
        "buckets": _buckets(spec.get("file_mounts") or {}),
    }
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _buckets(mounts: Mapping[str, Any]) -> dict[str, Any]:
    """What is mounted when machines are made; uploads arrive with each attempt."""
    return {
        target: source
        for target, source in mounts.items()
        if not (isinstance(source, str) and source.startswith("upload:"))
    }
