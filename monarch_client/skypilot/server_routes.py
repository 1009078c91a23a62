"""What the portal wants to know as exact data, and SkyPilot tells in prose or not at all.

These run inside SkyPilot's own server, see `server_plugin.py`.
"""

from __future__ import annotations

import threading
from typing import Any

import sky
from fastapi import HTTPException
from sky import exceptions, global_user_state, optimizer
from sky.utils import resources_utils

from monarch_client.skypilot.translate import without_colour
from monarch_client.version import __version__

# The optimizer reads catalogues that it loads on first use; one at a time keeps its memory small.
_one_at_a_time = threading.Lock()
NO_ROOM = (exceptions.ResourcesUnavailableError, exceptions.NoCloudAccessError)


def plan(body: dict[str, Any]) -> dict[str, Any]:
    """{candidates, reasons} for `{"task": <task YAML as a mapping>}`; 400 for what is no task.

    Prices are dollars an hour for all nodes. The candidates are sorted by price, the chosen one
    first; without any, `reasons` says why.
    """
    try:
        task = sky.Task.from_yaml_config(body["task"])
    except Exception as error:
        detail = {"type": type(error).__name__, "message": without_colour(str(error))}
        raise HTTPException(status_code=400, detail=detail) from error
    with _one_at_a_time:
        return _planned(task)


def about() -> dict[str, str]:
    """Which portal this server belongs to."""
    return {"portal": __version__}


def rates() -> dict[str, float]:
    """Dollars an hour of each cluster that exists, for all its nodes, by cluster hash.

    Only the server knows: prices of one's own machines stand in its configuration.
    """
    known: dict[str, float] = {}
    for record in global_user_state.get_clusters():
        handle = record["handle"]
        if handle is not None and getattr(handle, "launched_resources", None) is not None:
            hourly = handle.launched_resources.get_cost(3600)
            known[record["cluster_hash"]] = hourly * handle.launched_nodes
    return known


def clouds(workspace: str = "default") -> list[dict[str, Any]]:
    """[{cloud, context, enabled, reason}] as of SkyPilot's last check of its credentials."""
    return [
        {
            "cloud": cloud.lower(),
            "context": context,
            "enabled": bool(found.get("enabled")),
            "reason": without_colour(found.get("reason") or ""),
        }
        for cloud, contexts in global_user_state.get_cached_check_results(workspace).items()
        for context, found in contexts.items()
    ]


def _planned(task: Any) -> dict[str, Any]:
    reasons: list[str] = []
    chosen = None
    try:
        with sky.Dag() as dag:
            dag.add(task)
        optimizer.Optimizer.optimize(dag, quiet=True)
        chosen = task.best_resources
    except NO_ROOM as error:
        reasons.append(str(error))
    except Exception as error:
        detail = {"type": type(error).__name__, "message": without_colour(str(error))}
        raise HTTPException(status_code=400, detail=detail) from error
    rows, more = _candidates(task, chosen)
    return {"candidates": rows, "reasons": [without_colour(one) for one in [*reasons, *more]]}


def _candidates(task: Any, chosen: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Every feasible kind of machine, in its cheapest region, and why others are not."""
    try:
        launchable, by_cloud, alike, hints = optimizer._fill_in_launchable_resources(
            task, None, quiet=True
        )
    except NO_ROOM:
        return [], []
    reasons = [str(hint) for each in hints.values() for hint in each]
    reasons += [f"Nothing fits {asked}." for asked, fitting in launchable.items() if not fitting]
    if alike and not any(launchable.values()):
        reasons.append(f"Did you mean: {', '.join(map(str, alike))}?")
    rows = []
    for resources in (one for feasible in by_cloud.values() for one in feasible):
        if chosen is not None and _includes(resources, chosen):
            rows.append(_row(chosen, task.num_nodes, chosen=True))
            chosen = None
        else:
            rows.append(_row(_in_cheapest_region(resources), task.num_nodes, chosen=False))
    rows.sort(key=lambda row: (not row["chosen"], row["usd_per_hour"]))
    return rows, list(dict.fromkeys(reasons))


def _includes(resources: Any, chosen: Any) -> bool:
    """Whether `chosen` is this candidate, placed in a region."""
    return (
        resources.cloud.is_same_cloud(chosen.cloud)
        and resources.instance_type == chosen.instance_type
        and resources.use_spot == chosen.use_spot
        and resources.region in {None, chosen.region}
        and resources.zone in {None, chosen.zone}
    )


def _in_cheapest_region(resources: Any) -> Any:
    placed = resources_utils.make_launchables_for_valid_region_zones(resources)
    return min(placed, key=lambda one: one.get_cost(3600)) if placed else resources


def _row(resources: Any, nodes: int, *, chosen: bool) -> dict[str, Any]:
    cpus, memory = resources.cloud.get_vcpus_mem_from_instance_type(resources.instance_type)
    return {
        "infra": resources.infra.to_str(),
        "instance_type": resources.instance_type,
        "cpus": cpus,
        "memory": memory,
        "accelerators": dict(resources.accelerators or {}),
        "use_spot": bool(resources.use_spot),
        "usd_per_hour": resources.get_cost(3600) * nodes,
        "chosen": chosen,
    }
