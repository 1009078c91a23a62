"""Trees of meshes as runners send them, for tests."""

from __future__ import annotations

from typing import Any

from tests.frame_bytes import T0


def actor(name: str = "probe<a1>", **fields: Any) -> dict[str, Any]:
    """Return one actor of a tree."""
    return {
        "id": name,
        "kind": "train.Probe",
        "state": "running",
        "doing": "idle",
        "messages": 3,
        "why": "",
        **fields,
    }


def proc(name: str = "trainers<p1>", **fields: Any) -> dict[str, Any]:
    """Return one proc of a tree, with one actor."""
    return {
        "id": name,
        "state": "alive",
        "why": "",
        "left_out": 0,
        "actors": [actor()],
        **fields,
    }


def host(rank: int | None = 0, **fields: Any) -> dict[str, Any]:
    """Return one host of a tree, with one proc."""
    return {
        "id": f"host<h{rank}>",
        "rank": rank,
        "state": "up",
        "why": "",
        "left_out": 0,
        "procs": [proc()],
        **fields,
    }


def tree(after_s: float, *hosts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return one sound tree, `after_s` seconds after T0; two hosts that are well unless given."""
    return {
        "rank": 0,
        "t": T0 + after_s,
        "kind": "mesh",
        "answers": True,
        "why": "",
        "left_out": 0,
        "hosts": list(hosts) or [host(0), host(1)],
        **fields,
    }


def dead(name: str = "trainers<p1>") -> dict[str, Any]:
    """Return a proc that was lost."""
    why = "GET /v1/trainers at 07:31:02 UTC, not for the first time: 404 not_found: no agent"
    return proc(name, state="dead", why=why, actors=[actor(state="unknown")])
