"""The routes that answer as exact data what SkyPilot reports in prose or not at all.

These run inside SkyPilot's own server, see `server_plugin.py`.
"""

from __future__ import annotations

import threading
from typing import Any

import sky
from fastapi import HTTPException
from sky import exceptions, global_user_state, optimizer
from sky.utils import resources_utils

from monarch_client.skypilot.translate import without_color, without_commands
from monarch_client.version import __version__

# The optimizer reads catalogues that it loads on first use; one at a time keeps its memory small.
_one_at_a_time = threading.Lock()
# What multiplying prices adds beyond is no money.
DIGITS = 9
MOST_CANDIDATES = 200
NO_ROOM = (exceptions.ResourcesUnavailableError, exceptions.NoCloudAccessError)


def plan(body: dict[str, Any]) -> dict[str, Any]:
    """Return {candidates, reasons} for `{"task": <task YAML as a mapping>}`; 400 if it is no task.

    Prices are dollars an hour for all nodes. The candidates are sorted by price, the chosen one
    first; `reasons` says why not others.
    """
    try:
        task = sky.Task.from_yaml_config(body["task"])
    except Exception as error:
        detail = {"type": type(error).__name__, "message": without_color(str(error))}
        raise HTTPException(status_code=400, detail=detail) from error
    with _one_at_a_time:
        return _planned(task)


def about() -> dict[str, str]:
    """Return the version of the portal that this server belongs to."""
    return {"portal": __version__}


def rates() -> dict[str, float]:
    """Return dollars an hour of each existing cluster, for all its nodes, by cluster hash.

    Only the server knows them: the prices of own machines are in its configuration.
    """
    known: dict[str, float] = {}
    for record in global_user_state.get_clusters():
        handle = record["handle"]
        if handle is not None and getattr(handle, "launched_resources", None) is not None:
            hourly = handle.launched_resources.get_cost(3600)
            known[record["cluster_hash"]] = round(hourly * handle.launched_nodes, DIGITS)
    return known


def clouds(workspace: str = "default") -> list[dict[str, Any]]:
    """Return [{cloud, context, enabled, reason}] as of SkyPilot's last check of its credentials."""
    return [
        {
            "cloud": cloud.lower(),
            "context": context,
            "enabled": bool(found.get("enabled")),
            "reason": without_color(found.get("reason") or ""),
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
        detail = {"type": type(error).__name__, "message": without_color(str(error))}
        raise HTTPException(status_code=400, detail=detail) from error
    placed, more = _placed(task)
    rows = [_row(one, task.num_nodes) for one in placed]
    best = _row(chosen, task.num_nodes) if chosen is not None else None
    # Requests may overlap: the same machine in the same place is one candidate.
    unique = [row for at, row in enumerate(rows) if row not in rows[:at] and row != best]
    unique.sort(key=lambda row: (row["usd_per_hour"], row["infra"]))
    rows = [row | {"chosen": row is best} for row in ([best] if best else []) + unique]
    texts = dict.fromkeys(without_commands(one) for one in [*reasons, *more])
    return {"candidates": rows[:MOST_CANDIDATES], "reasons": list(texts)}


def _placed(task: Any) -> tuple[list[Any], list[str]]:
    """Return all suitable machines in all places that have them, and why others are not."""
    try:
        launchable, by_cloud, alike, hints = optimizer._fill_in_launchable_resources(
            task, None, quiet=True
        )
    except NO_ROOM:
        return [], []
    reasons = [str(hint) for each in hints.values() for hint in each]
    if any(launchable.values()):
        # Of several requests only some are granted.
        reasons += [
            f"Nothing fits {resources}." for resources, fitting in launchable.items() if not fitting
        ]
    elif alike:
        reasons.append(f"Did you mean {' or '.join(map(str, alike))}?")
    feasible = (one for each in by_cloud.values() for one in each)
    everywhere = (
        placed
        for one in feasible
        for placed in resources_utils.make_launchables_for_valid_region_zones(one)
    )
    return list(everywhere), reasons


def _row(resources: Any, nodes: int) -> dict[str, Any]:
    cpus, memory = resources.cloud.get_vcpus_mem_from_instance_type(resources.instance_type)
    return {
        "infra": resources.infra.to_str(),
        "instance_type": resources.instance_type,
        "cpus": cpus,
        "memory": memory,
        "accelerators": dict(resources.accelerators or {}),
        "use_spot": bool(resources.use_spot),
        "usd_per_hour": round(resources.get_cost(3600) * nodes, DIGITS),
    }
