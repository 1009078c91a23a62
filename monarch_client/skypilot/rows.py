"""SkyPilot's records as plain rows. Pure: it reads attributes and keys, and never imports sky."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from monarch_client.skypilot.translate import without_color

Row = dict[str, Any]


def value_of(enum: Any) -> str:
    """Return an enum's value, or a plain value, as text."""
    return str(getattr(enum, "value", enum))


def read(record: Any, key: str, default: Any = None) -> Any:
    """Read `key` of a record, which is a mapping or an object."""
    if isinstance(record, Mapping):
        found = record.get(key, default)
    else:
        found = getattr(record, key, default)
    return default if found is None else found


def request_row(payload: Any) -> Row:
    """Convert one request of SkyPilot's server, as `launch.requests_of` gives it."""
    return {
        "request_id": read(payload, "request_id"),
        "name": read(payload, "name", "").removeprefix("sky."),
        "status": read(payload, "status", ""),
        "created_at": read(payload, "created_at", 0.0),
        "finished_at": read(payload, "finished_at"),
        "message": without_color(read(payload, "status_msg", "")),
    }


def cluster_row(record: Any, rates: Mapping[str, float]) -> Row:
    """Convert a cluster, as `launch.status` gives it. `rates`: dollars an hour by cluster hash."""
    handle = read(record, "handle")
    resources = getattr(handle, "launched_resources", None)
    nodes = getattr(handle, "launched_nodes", None) or read(record, "nodes", 0)
    key = read(record, "cluster_hash", "")
    autostop = read(record, "autostop", -1)
    return {
        "name": read(record, "name"),
        "status": read(record, "status") and value_of(read(record, "status")),
        "hash": key,
        "launched_at": read(record, "launched_at"),
        "num_nodes": nodes,
        "infra": infra_of(resources),
        "cloud": read(record, "cloud", "").lower() or _text(resources, "cloud").lower(),
        "region": read(record, "region", "") or _text(resources, "region"),
        "zone": _text(resources, "zone"),
        "resources": read(record, "resources_str", ""),
        "use_spot": bool(getattr(resources, "use_spot", False)),
        "usd_per_hour": rates.get(key),
        "addresses": addresses_of(handle),
        "autostop_minutes": autostop if autostop >= 0 else None,
        "to_down": bool(read(record, "to_down", False)),
        "user": read(record, "user_name", ""),
        "message": without_color(_message(record)),
    }


def machines_of(record: Any) -> str:
    """Return the place, type and number of a cluster's machines, which determine its price."""
    handle = read(record, "handle")
    resources = getattr(handle, "launched_resources", None)
    nodes = getattr(handle, "launched_nodes", None) or read(record, "nodes", 0)
    where = infra_of(resources) or _infra_of_record(record)
    return f"{where} {read(record, 'resources_str', '')} {nodes}"


def addresses_of(handle: Any) -> list[list[str]]:
    """Return [[internal, external], ...] in rank order; empty while unknown."""
    pairs = getattr(handle, "stable_internal_external_ips", None) or ()
    return [[str(internal or ""), str(external or "")] for internal, external in pairs]


def access_row(record: Any) -> Row:
    """Return the ssh access of a cluster for `launch.ssh_access`; `key` is "" if unknown."""
    handle, known = read(record, "handle"), read(record, "credentials", {})
    ports = getattr(handle, "stable_ssh_ports", None) or [22]
    addresses = addresses_of(handle) or [["", ""]]
    key = read(known, "ssh_private_key_content", "")
    if not key and read(known, "ssh_private_key", ""):
        # A server on this machine reports the path of the key.
        with suppress(OSError):
            key = Path(read(known, "ssh_private_key")).expanduser().read_text()
    return {
        "host": addresses[0][1] or addresses[0][0],
        "port": int(ports[0]),
        "user": read(known, "ssh_user", "") or str(getattr(handle, "ssh_user", None) or ""),
        "key": key,
        "proxy_command": read(known, "ssh_proxy_command", ""),
    }


def infra_of(resources: Any) -> str:
    """Return the location in SkyPilot's notation: cloud/region/zone. Empty if unknown."""
    if resources is None:
        return ""
    try:
        return str(resources.infra.to_str() or "")
    except Exception:  # noqa: BLE001 - of a cloud that this process does not know
        return ""


def job_row(record: Any) -> Row:
    """Convert one job on a cluster, as `launch.jobs` gives it."""
    return {
        "job_id": read(record, "job_id"),
        "name": read(record, "job_name", ""),
        "status": value_of(read(record, "status", "")),
        "submitted_at": read(record, "submitted_at"),
        "started_at": _time(read(record, "start_at")),
        "ended_at": _time(read(record, "end_at")),
    }


def cost_row(record: Any) -> Row:
    """Convert one line of `launch.cost_report`. No status: the cluster no longer exists."""
    resources = read(record, "resources")
    status = read(record, "status")
    return {
        "name": read(record, "name"),
        "hash": read(record, "cluster_hash", ""),
        "num_nodes": read(record, "num_nodes", 0),
        "resources": read(record, "resources_str", "") or _shown(resources),
        "infra": infra_of(resources) or _infra_of_record(record),
        "duration_s": read(record, "duration", 0),
        "usd": read(record, "total_cost", 0.0),
        "status": value_of(status) if status is not None else None,
        "use_spot": bool(getattr(resources, "use_spot", False)),
    }


def plain(value: Any) -> Any:
    """Return a request's result as plain data; what is not plain becomes None."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(each) for each in value]
    return None


def slurm_gpus(infra: str, nodes: Iterable[Any]) -> list[Row]:
    """Return the GPUs of a Slurm cluster's nodes, as `launch.gpus` gives them."""
    return [
        {
            "infra": f"{infra}/{_partition(node)}".rstrip("/"),
            "node": read(node, "node_name", ""),
            "gpu": read(node, "gpu_type", ""),
            "total": int(read(node, "total_gpus", 0)),
            "free": int(read(node, "free_gpus", 0)),
        }
        for node in nodes
        if int(read(node, "total_gpus", 0))
    ]


def kubernetes_gpus(infra: str, found: Any) -> list[Row]:
    """Return the GPUs of a Kubernetes cluster's nodes. `free` is None if access is denied."""
    rows = []
    for name, node in (read(found, "node_info_dict", {}) or {}).items():
        total = int(read(read(node, "total", {}), "accelerator_count", 0))
        free = int(read(read(node, "free", {}), "accelerators_available", 0))
        if total:
            kind = read(node, "accelerator_type", "")
            row = {"infra": infra, "node": name, "gpu": kind, "total": total}
            rows.append(row | {"free": free if free >= 0 else None})
    return rows


def _partition(node: Any) -> str:
    return str(read(node, "partition", "")).split(",")[0].rstrip("*")


def _message(record: Any) -> str:
    return str(read(record, "init_status_reason", "") or read(record, "last_event", ""))


def _text(resources: Any, name: str) -> str:
    return str(getattr(resources, name, None) or "")


def _time(value: Any) -> Any:
    # SkyPilot writes -1 for "not yet".
    return value if value is not None and value > 0 else None


def _shown(resources: Any) -> str:
    try:
        return str(resources) if resources is not None else ""
    except Exception:  # noqa: BLE001 - some can't be shown outside the server
        return ""


def _infra_of_record(record: Any) -> str:
    parts = (str(read(record, "cloud", "")).lower(), str(read(record, "region", "")))
    return "/".join(filter(None, parts))
