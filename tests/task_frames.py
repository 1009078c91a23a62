"""Reports of task contexts as runners send them, for tests."""

from __future__ import annotations

from typing import Any

from tests.frame_bytes import T0


def count(name: str = "square", **fields: Any) -> dict[str, Any]:
    """Return the counts of one name."""
    counts = {"pending": 4, "running": 2, "finished": 90, "failed": 3, "cancelled": 1}
    return {"name": name, "function": "", **counts, "mean_seconds": 0.25, **fields}


def actor(name: str = "counter", **fields: Any) -> dict[str, Any]:
    """Return one actor."""
    own = {"kind": "Counter", "state": "alive", "host": "node-1", "pid": 4711, "calls": 12}
    return {"name": name, **own, "why": "", **fields}


def host(name: str = "node-1", **fields: Any) -> dict[str, Any]:
    """Return one host with an object store."""
    store = {"objects": 7, "bytes": 3 << 30, "spilled": 0, "limit": 8 << 30}
    return {"name": name, "processes": 5, **store, **fields}


def failure(name: str = "square", **fields: Any) -> dict[str, Any]:
    """Return one failed task."""
    trace = 'Traceback (most recent call last):\n  File "sweep.py", line 8, in square\n'
    return {
        "name": name,
        "host": "node-1",
        "at": "2023-11-14T22:13:20Z",
        "error": f"{name} in process 71 on node-1: ValueError: bad number 7",
        "trace": f"{trace}ValueError: bad number 7\n",
        **fields,
    }


def context(name: str = "71-1", **fields: Any) -> dict[str, Any]:
    """Return one context with a row of each kind."""
    return {
        "name": name,
        "pid": 71,
        "machine": "",
        "is_open": True,
        "objects": 9,
        "tasks": [count()],
        "tasks_left_out": 0,
        "actors": [actor()],
        "actors_left_out": 0,
        "hosts": [host()],
        "hosts_left_out": 0,
        "failures": [failure()],
        "failures_left_out": 2,
        **fields,
    }


def report(after_s: float, *contexts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the report of rank 0, `after_s` seconds after T0; one context unless given."""
    return {
        "rank": 0,
        "t": T0 + after_s,
        "kind": "tasks",
        "contexts": list(contexts) or [context()],
        "left_out": 0,
        **fields,
    }
