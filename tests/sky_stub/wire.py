"""The wire format that SkyPilot's client reads: requests, errors, rows of clusters and of jobs.

Handles and resources go as plain dictionaries, which SkyPilot's decoders take like its pickles.
"""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.util
import json
import pickle
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

from tests.sky_stub.cloud import Row
from tests.sky_stub.errors import SkyError
from tests.sky_stub.jobs import USER

USER_HASH = "5b0e57ab"
WORKSPACE = "default"


@cache
def versions() -> dict[str, str]:
    """Return the versions of the installed SkyPilot and its protocol, without importing it."""
    spec = importlib.util.find_spec("sky")
    assert spec is not None
    assert spec.submodule_search_locations
    constants = Path(spec.submodule_search_locations[0], "server", "constants.py").read_text()
    number = re.search(r"^API_VERSION = (\d+)", constants, re.MULTILINE)
    assert number is not None
    return {"api_version": number[1], "version": importlib.metadata.version("skypilot")}


def health() -> dict[str, Any]:
    """Return the answer of /api/health."""
    return {
        "status": "healthy",
        **versions(),
        "version_on_disk": versions()["version"],
        "commit": "0" * 40,
        "basic_auth_enabled": False,
        "service_account_token_enabled": False,
    }


def pickled(data: Any) -> str:
    """Serialize plain data so that SkyPilot's client can unpickle it."""
    return base64.b64encode(pickle.dumps(data)).decode()


def error_field(error: SkyError) -> str:
    """Serialize a request's error."""
    fields = {"object": pickled(error.to_dict()), "type": error.type_name, "message": str(error)}
    return json.dumps(fields)


def handle(row: Row) -> dict[str, Any]:
    """Return a cluster's handle."""
    return {
        "cluster_name": row["name"],
        "cluster_name_on_cloud": f"{row['name']}-{USER_HASH}",
        "cluster_yaml": f"~/.sky/generated/{row['name']}.yml",
        "launched_nodes": row["num_nodes"],
        "launched_resources": dict(row["resources"]),
        "stable_internal_external_ips": [[each, each] for each in row["addresses"]],
        "stable_ssh_ports": [22] * row["num_nodes"],
        "docker_user": None,
        "ssh_user": USER,
    }


def seen_status(row: Row, interrupted_looks: str) -> str:
    """Return a cluster's reported status, which may be untrue after a launch that broke off."""
    return interrupted_looks if row["interrupted"] else str(row["status"])


def cluster(row: Row, status: str) -> dict[str, Any]:
    """Return one record of /status."""
    cloud, region, zone = [*row["infra"].split("/"), None, None][:3]
    kind = None
    if status == "INIT":
        kind = "unhealthy" if row["dead_nodes"] else "launching"
    record = {
        "name": row["name"],
        "launched_at": row["launched_at"],
        "handle": handle(row),
        "last_use": "stub",
        "status": status,
        "autostop": row["autostop"],
        "to_down": row["to_down"],
        "metadata": {},
        "cluster_hash": row["hash"],
        "cluster_ever_up": bool(row.get("was_up")),
        "status_updated_at": int(time.time()),
        "user_hash": USER_HASH,
        "user_name": USER,
        "workspace": WORKSPACE,
        "is_managed": False,
        "last_event": "",
        "init_kind": kind,
        "resources_str": resources_text(row),
        "resources_str_full": resources_text(row),
        "nodes": row["num_nodes"],
        "cloud": cloud,
        "region": region,
        "zone": zone,
        "cpus": "2",
        "memory": "4",
        "accelerators": str(row["resources"].get("accelerators") or "") or None,
        "labels": {},
        "storage_mounts_metadata": pickled(None),
    }
    return {key: value for key, value in record.items() if value is not None}


def job(record: dict[str, Any]) -> dict[str, Any]:
    """Return one record of /queue."""
    return {
        "job_id": record["id"],
        "job_name": record["name"],
        "username": USER,
        "user_hash": USER_HASH,
        "submitted_at": record["submitted_at"],
        "start_at": record.get("start_at"),
        "end_at": record.get("end_at"),
        "resources": f"{len(record['homes'])}x[CPU:1]",
        "status": record["status"],
        "log_path": f"~/sky_logs/{record['id']}-{record['name']}",
        "metadata": {},
        "links": {},
    }


def bill(row: Row, status: str | None) -> dict[str, Any]:
    """Return one record of /cost_report."""
    cloud, region, _ = [*row["infra"].split("/"), None, None][:3]
    return {
        "name": row["name"],
        "launched_at": row["launched_at"],
        "duration": int(row["duration_s"]),
        "num_nodes": row["num_nodes"],
        "resources": dict(row["resources"]),
        "cluster_hash": row["hash"],
        "usage_intervals": [
            [int(start), None if end is None else int(end)] for start, end in row["intervals"]
        ],
        "total_cost": row["usd"],
        "status": status,
        "user_hash": USER_HASH,
        "user_name": USER,
        "workspace": WORKSPACE,
        "cloud": cloud,
        "region": region,
        "cpus": "2",
        "memory": "4",
        "accelerators": None,
        "resources_str": resources_text(row),
        "resources_str_full": resources_text(row),
    }


def resources_text(row: Row) -> str:
    """Describe a cluster's machines."""
    spot = "[Spot]" if row["use_spot"] else ""
    return f"{row['num_nodes']}x{spot}(cpus=2, mem=4, {row['resources']['instance_type']})"
