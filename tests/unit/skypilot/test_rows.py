"""SkyPilot's records as plain rows, also where they are incomplete or can't be shown."""

from __future__ import annotations

import json
from enum import Enum
from types import SimpleNamespace

import pytest

from monarch_client.skypilot import rows


class Status(Enum):
    UP = "UP"


class Resources(SimpleNamespace):
    @property
    def infra(self) -> SimpleNamespace:
        return SimpleNamespace(to_str=lambda: f"slurm/{self.region}")

    def __repr__(self) -> str:
        raise NotImplementedError


RESOURCES = Resources(cloud="Slurm", region="brig", zone="gpu", use_spot=True)


def record(**fields: object) -> dict[str, object]:
    handle = SimpleNamespace(
        launched_resources=RESOURCES,
        launched_nodes=2,
        stable_internal_external_ips=[("10.0.0.1", "127.0.0.1"), ("10.0.0.2", None)],
    )
    known = {
        "name": "c1",
        "status": Status.UP,
        "cluster_hash": "h1",
        "launched_at": 5,
        "handle": handle,
        "autostop": 10,
        "to_down": True,
        "resources_str": "2x(H100:1)",
        "cloud": "Slurm",
        "region": "brig",
        "user_name": "portal",
        "nodes": 2,
    }
    return known | fields


def test_a_cluster_has_all_that_is_known_of_it() -> None:
    assert rows.cluster_row(record(), {"h1": 0.25}) == {
        "name": "c1",
        "status": "UP",
        "hash": "h1",
        "launched_at": 5,
        "num_nodes": 2,
        "infra": "slurm/brig",
        "cloud": "slurm",
        "region": "brig",
        "zone": "gpu",
        "resources": "2x(H100:1)",
        "use_spot": True,
        "usd_per_hour": 0.25,
        "addresses": [["10.0.0.1", "127.0.0.1"], ["10.0.0.2", ""]],
        "autostop_minutes": 10,
        "to_down": True,
        "user": "portal",
        "message": "",
    }


def test_a_cluster_that_never_came_up_has_no_addresses_and_no_price() -> None:
    row = rows.cluster_row(record(handle=None, autostop=-1, init_status_reason="\x1b[2mwaits"), {})
    assert row["addresses"] == []
    assert row["infra"] == ""
    assert row["usd_per_hour"] is None
    assert row["autostop_minutes"] is None
    assert row["message"] == "waits"
    json.dumps(row)


def test_a_request_is_named_as_a_verb() -> None:
    payload = SimpleNamespace(
        request_id="r", name="sky.launch", status="FAILED", created_at=1.5, status_msg=None
    )
    assert rows.request_row(payload) == {
        "request_id": "r",
        "name": "launch",
        "status": "FAILED",
        "created_at": 1.5,
        "finished_at": None,
        "message": "",
    }


def test_a_job_that_has_not_begun_has_no_times() -> None:
    row = rows.job_row(
        {"job_id": 1, "job_name": "mp-7", "status": Status.UP, "submitted_at": 3, "start_at": -1}
    )
    assert row == {
        "job_id": 1,
        "name": "mp-7",
        "status": "UP",
        "submitted_at": 3,
        "started_at": None,
        "ended_at": None,
    }


def test_a_bill_of_a_cluster_that_is_gone_has_no_status_and_all_of_its_digits() -> None:
    bill = {"name": "c", "cluster_hash": "h", "num_nodes": 2, "resources": RESOURCES}
    row = rows.cost_row(bill | {"duration": 61, "total_cost": 0.0012345678, "status": None})
    assert row["status"] is None
    assert row["usd"] == 0.0012345678
    assert row["resources"] == ""
    assert row["infra"] == "slurm/brig"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((3, object()), [3, None]),
        ({"a": {1}, 2: None}, {"a": [1], "2": None}),
        (object(), None),
        ("text", "text"),
    ],
)
def test_only_plain_data_goes_on(value: object, expected: object) -> None:
    assert rows.plain(value) == expected


def test_gpus_of_slurm_are_listed_by_node_with_partition() -> None:
    nodes = [
        {
            "node_name": "bn1",
            "partition": "gpu*",
            "gpu_type": "H100",
            "total_gpus": 2,
            "free_gpus": 1,
        },
        {"node_name": "login", "partition": "cpu", "total_gpus": 0},
    ]
    assert rows.slurm_gpus("slurm/brig", nodes) == [
        {"infra": "slurm/brig/gpu", "node": "bn1", "gpu": "H100", "total": 2, "free": 1}
    ]


def test_free_gpus_that_may_not_be_looked_up_are_unknown() -> None:
    node = SimpleNamespace(
        accelerator_type="A100",
        total={"accelerator_count": 8},
        free={"accelerators_available": -1},
    )
    found = SimpleNamespace(node_info_dict={"n1": node})
    assert rows.kubernetes_gpus("kubernetes/x", found) == [
        {"infra": "kubernetes/x", "node": "n1", "gpu": "A100", "total": 8, "free": None}
    ]
