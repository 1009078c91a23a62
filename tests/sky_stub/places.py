"""The planned locations that a task fits, and those with free capacity."""

from __future__ import annotations

from typing import Any

from tests.sky_stub.cloud import Cloud
from tests.sky_stub.errors import SkyError, no_room

Place = dict[str, Any]
Choice = dict[str, Any]


def candidates(cloud: Cloud, task: dict[str, Any]) -> list[Choice]:
    """List every location that the task fits.

    They are in the task's own order if it has one, else the cheapest is first.
    """
    requested = task.get("resources") or {}
    alternatives = requested.get("ordered") or requested.get("any_of") or [{}]
    common = {key: value for key, value in requested.items() if key not in {"ordered", "any_of"}}
    found = [
        choice
        for request in alternatives
        for place in cloud.plan["places"]
        if (choice := _choice(place, {**common, **request})) is not None
    ]
    if "ordered" not in requested:
        found.sort(key=lambda choice: choice["usd_per_hour"])
    return found


def choose(cloud: Cloud, task: dict[str, Any], nodes: int, cluster: str) -> Choice:
    """Choose the first location with free capacity.

    SkyError if none fits the task, or none has capacity or works today.
    """
    fitting = candidates(cloud, task)
    if not fitting:
        requested = task.get("resources") or {}
        message = f"\x1b[33mNo resource satisfying {requested} on the enabled infra.\x1b[0m"
        raise no_room(message, [])
    history = []
    for choice in fitting:
        fault = cloud.plan.take(("error",), "provision", cluster, choice["infra"])
        if fault and fault.get("type", "ResourcesUnavailableError") != "ResourcesUnavailableError":
            raise SkyError(fault["type"], fault.get("message", "planned"))
        free = choice["capacity"] - _taken(cloud, choice["infra"], cluster)
        if not fault and nodes <= free:
            return choice
        reason = fault.get("message", f"{nodes} nodes wanted, {max(free, 0)} free")
        history.append(f"Failed to acquire resources in {choice['infra']}: {reason}")
    raise no_room("Failed to provision all possible launchable resources.", history)


def can_stop(cloud: Cloud, infra: str) -> bool:
    """Whether nodes of a location can be stopped and started again."""
    return any(place["infra"] == infra and place.get("can_stop") for place in cloud.plan["places"])


def _choice(place: Place, request: dict[str, Any]) -> Choice | None:
    spot = bool(request.get("use_spot"))
    price = place.get("spot_usd_per_hour") if spot else place.get("usd_per_hour", 0.0)
    if price is None or not _is_within(place["infra"], request):
        return None
    if not _has(place.get("accelerators") or {}, request.get("accelerators")):
        return None
    return {
        "infra": place["infra"],
        "capacity": place.get("capacity", 64),
        "usd_per_hour": float(price),
        "use_spot": spot,
        "resources": {
            "infra": place["infra"],
            "instance_type": place.get("instance_type", "2CPU--4GB"),
            "use_spot": spot,
            **({"accelerators": request["accelerators"]} if request.get("accelerators") else {}),
        },
    }


def _is_within(infra: str, request: dict[str, Any]) -> bool:
    """Whether a location is the requested one, or a part of it."""
    parts = [request.get("cloud"), request.get("region"), request.get("zone")]
    requested = request.get("infra") or "/".join(part for part in parts if part)
    places = str(requested or "*").lower().split("/")
    return all(
        part in {"*", own} for part, own in zip(places, infra.lower().split("/"), strict=False)
    )


def _has(own: dict[str, float], requested: Any) -> bool:
    if not requested:
        return True
    names = requested if isinstance(requested, dict) else dict([str(requested).partition(":")[::2]])
    return any(float(count or 1) <= own.get(name, 0) for name, count in names.items())


def _taken(cloud: Cloud, infra: str, but: str) -> int:
    rows = [row for name in cloud.names() if name != but and (row := cloud.find(name))]
    return sum(r["num_nodes"] for r in rows if r["infra"] == infra and r["status"] != "STOPPED")
