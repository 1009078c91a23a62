from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.config import AttemptConfig, ConfigError, read_config
from monarch_client.runner.node.skypilot_node import skypilot_node

MINIMAL: dict[str, Any] = {
    "format": 1,
    "attempt_id": 17,
    "job_id": 42,
    "attempt_number": 2,
    "project": "rl",
    "job_name": "ppo",
    "portal_url": "http://127.0.0.1:8000/",
    "token": "t",
    "nodes": [
        {"rank": 1, "address": "10.0.0.2"},
        {"rank": 0, "address": "10.0.0.1"},
        {"rank": 2, "address": "10.0.0.3"},
    ],
    "run": "python train.py",
}


def config(tmp_path: Path, **changes: Any) -> AttemptConfig:
    path = tmp_path / "attempt.json"
    path.write_text(json.dumps({**MINIMAL, **changes}))
    return read_config(path)


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    read = config(tmp_path)
    assert (read.port, read.hub_port, read.python) == (22222, 22223, "python3")
    assert read.timeouts.setup_s == 3600
    assert read.portal_url == "http://127.0.0.1:8000"
    assert not read.is_monarch


def test_nodes_that_are_left_out_are_taken_from_where_the_runner_is(tmp_path: Path) -> None:
    path = tmp_path / "attempt.json"
    path.write_text(json.dumps({**MINIMAL, "nodes": None, "meshes": {"all": 2}}))
    read = read_config(path, ("10.0.0.8", "10.0.0.9"))
    assert (read.ranks, read.address_of(1)) == ((0, 1), "10.0.0.9")
    with pytest.raises(ConfigError, match="--from-skypilot"):
        read_config(path)
    with pytest.raises(ConfigError, match="meshes need 2 nodes, not 1"):
        read_config(path, ("10.0.0.8",))


def test_archives_lie_beside_the_file(tmp_path: Path) -> None:
    uploads = [{"archive": "uploads/0.tar.gz", "target": "~/x"}]
    (upload,) = config(tmp_path, uploads=uploads).uploads
    assert (upload.archive, upload.target) == (tmp_path / "uploads" / "0.tar.gz", "~/x")


def test_an_unknown_carrier_is_refused(tmp_path: Path) -> None:
    assert config(tmp_path).carrier == "push"
    with pytest.raises(ConfigError, match="pigeon"):
        config(tmp_path, carrier="pigeon")


@pytest.mark.parametrize("rank", ["", "x", "2", "-1"])
def test_a_runner_that_skypilot_did_not_start_says_so(rank: str) -> None:
    environ = {"SKYPILOT_NODE_RANK": rank, "SKYPILOT_NODE_IPS": "10.0.0.8\n10.0.0.9\n"}
    with pytest.raises(ConfigError, match="SKYPILOT_NODE_RANK"):
        skypilot_node(environ)
    assert skypilot_node({**environ, "SKYPILOT_NODE_RANK": "1"}) == (1, ("10.0.0.8", "10.0.0.9"))


def test_nodes_are_found_by_rank_whatever_their_order(tmp_path: Path) -> None:
    assert config(tmp_path).address_of(1) == "10.0.0.2"


@pytest.mark.feature("S0.2")
def test_nodes_are_dealt_to_meshes_in_rank_order(tmp_path: Path) -> None:
    read = config(tmp_path, meshes={"trainers": 2, "generators": 1})
    assert read.ranks_of_meshes() == {"trainers": [0, 1], "generators": [2]}
    assert [read.mesh_of(rank) for rank in read.ranks] == ["trainers", "trainers", "generators"]


def test_a_worker_has_the_same_address_on_all_sides_and_no_other_has_it(tmp_path: Path) -> None:
    plain = config(tmp_path, meshes={"all": 3})
    addresses = {plain.worker_address(rank) for rank in plain.ranks}
    assert len(addresses) == 3
    assert config(tmp_path, meshes={"all": 3}).worker_address(1) == plain.worker_address(1)
    assert plain.worker_address(1).endswith(">@tcp://10.0.0.2:22222")
    secured = config(tmp_path, meshes={"all": 3}, tls={"ca_cert": "c", "ca_key": "k"})
    assert "@tls://" in secured.worker_address(1)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"nodes": [{"rank": 1, "address": "10.0.0.2"}]},
        {"meshes": {"trainers": 2}},
        {"timeouts": {"unknown_s": 3}},
        {"run": None, "nodes": None},
    ],
)
def test_a_config_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        config(tmp_path, **changes)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "attempt.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot read"):
        read_config(tmp_path / "attempt.json")
