"""The routes that the portal's plugin adds to SkyPilot's server, answered from the plan."""

from __future__ import annotations

from typing import Any

from tests.sky_stub import places
from tests.sky_stub.cloud import Cloud


def about(_: Cloud, _body: Any) -> Any:
    """Return the portal to which the server belongs."""
    return {"portal": "stub"}


def clouds(cloud: Cloud, _: Any) -> Any:
    """Report the cloud of every location as enabled."""
    found = {tuple([*place["infra"].split("/"), ""][:2]) for place in cloud.plan["places"]}
    return [
        {"cloud": name, "context": context, "enabled": True, "reason": ""}
        for name, context in sorted(found)
    ]


def rates(cloud: Cloud, _: Any) -> Any:
    """Return the dollars an hour of each cluster by its hash."""
    rows = [row for name in cloud.names() if (row := cloud.find(name))]
    return {row["hash"]: row["usd_per_hour"] * row["num_nodes"] for row in rows}


def plan(cloud: Cloud, body: Any) -> Any:
    """List the candidates for a task, the chosen one first."""
    task = body["task"]
    nodes = int(task.get("num_nodes") or 1)
    found = places.candidates(cloud, task)
    rows = [
        {
            "infra": one["infra"],
            "instance_type": one["resources"]["instance_type"],
            "cpus": 2.0,
            "memory": 4.0,
            "accelerators": _accelerators(one["resources"].get("accelerators")),
            "use_spot": one["use_spot"],
            "usd_per_hour": one["usd_per_hour"] * nodes,
            "chosen": index == 0,
        }
        for index, one in enumerate(found)
    ]
    return {"candidates": rows, "reasons": [] if rows else ["Nothing fits this task."]}


def _accelerators(requested: Any) -> dict[str, float]:
    if isinstance(requested, str):
        name, _, count = requested.partition(":")
        return {name: float(count or 1)}
    return dict(requested or {})


ROUTES = {
    ("GET", "/mportal/about"): about,
    ("GET", "/mportal/clouds"): clouds,
    ("GET", "/mportal/rates"): rates,
    ("POST", "/mportal/plan"): plan,
}
