"""Compare the machines that jobs request, and decide after which endings they are sound. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from jobs.statuses import StopReason
from monarch_client.spec import JobSpec

# Endings that are not a sign of faulty machines.
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
        # A policy about the machines has another action for it.
        StopReason.LOG_POLICY,
    }
)


def leaves_healthy(reason: StopReason) -> bool:
    """Whether machines on which an attempt ended by `reason` can run another one."""
    return reason in _HEALTHY


def fingerprint(spec: JobSpec, backend_name: str) -> str:
    """Return a hash that is equal for jobs that request the same machines of a backend.

    What runs on the machines does not count. `resources` are compared as they were written, the
    image among them.
    """
    requested = {
        "backend": backend_name,
        "num_nodes": spec.num_nodes,
        "resources": spec.resources,
        "volumes": spec.passed_on.get("volumes") or {},
        "config": spec.config,
        "buckets": _buckets(spec.file_mounts),
    }
    text = json.dumps(requested, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _buckets(mounts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mounts that are made with the machines; uploads arrive with each attempt."""
    return {
        target: source
        for target, source in mounts.items()
        if not (isinstance(source, str) and source.startswith("upload:"))
    }
