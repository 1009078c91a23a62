"""Specifications that the local backend refuses, with the path and a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.backends.local import gpus as local_gpus
from jobs.backends.local.gpus import choose_gpus, gpu_environment
from jobs.backends.local.limits import find_obstacles
from jobs.errors import NoCapacityError

UPLOAD = "upload:" + "0" * 64


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fake the GPUs of this machine: none, until a test adds some."""
    names: list[str] = []
    monkeypatch.setattr(local_gpus, "gpus_of_machine", lambda: tuple(names))
    return names


def paths(spec: dict[str, Any]) -> list[str]:
    return [path for path, _ in find_obstacles(spec, capacity_nodes=4)]


@pytest.mark.parametrize(
    "spec",
    [
        {"run": "true"},
        {"num_nodes": 4},
        {"resources": {"infra": "local", "cpus": "1+", "memory": "1+", "use_spot": False}},
        {"resources": {"labels": {"team": "rl"}, "memory": 0.5, "cpus": 0.5}},
        {"workdir": UPLOAD, "file_mounts": {"data": UPLOAD, "~/more": UPLOAD}},
        {"workdir": {"url": "https://example.org/x.git"}},
    ],
)
def test_a_spec_that_this_machine_can_do_has_no_obstacles(spec: dict[str, Any]) -> None:
    assert paths(spec) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"num_nodes": 5}, "num_nodes"),
        ({"resources": {"ports": [8080]}}, "resources.ports"),
        ({"resources": {"image_id": "docker:python"}}, "resources.image_id"),
        ({"resources": {"use_spot": True}}, "resources.use_spot"),
        ({"resources": {"any_of": [{"infra": "aws"}]}}, "resources.any_of"),
        ({"resources": {"region": "us-east-1"}}, "resources.region"),
        ({"resources": {"cpus": "4000+"}}, "resources.cpus"),
        ({"resources": {"memory": "100TB+"}}, "resources.memory"),
        ({"resources": {"memory": 10**6}}, "resources.memory"),
        ({"file_mounts": {"data": "s3://bucket"}}, "file_mounts.data"),
        ({"file_mounts": {"data": {"name": "bucket"}}}, "file_mounts.data"),
        ({"file_mounts": {"/etc/passwd": UPLOAD}}, "file_mounts./etc/passwd"),
        ({"file_mounts": {"~/../x": UPLOAD}}, "file_mounts.~/../x"),
        ({"file_mounts": {"~/": UPLOAD}}, "file_mounts.~/"),
        ({"file_mounts": {"~/attempt.json": UPLOAD}}, "file_mounts.~/attempt.json"),
        ({"file_mounts": {"~/./python/bin": UPLOAD}}, "file_mounts.~/./python/bin"),
        ({"file_mounts": {"~/state": UPLOAD}}, "file_mounts.~/state"),
        ({"file_mounts": {"~/tmp/x": UPLOAD}}, "file_mounts.~/tmp/x"),
        ({"volumes": {"/data": "scratch"}}, "volumes"),
    ],
)
def test_what_this_machine_cannot_do_is_named(spec: dict[str, Any], path: str) -> None:
    assert paths(spec) == [path]


def test_a_gpu_that_is_not_there_is_refused() -> None:
    spec = {"resources": {"accelerators": "H100:8"}}
    assert find_obstacles(spec, 4) == [
        (
            "resources.accelerators",
            "Each node requests 8 H100, but this machine has no GPU.",
        )
    ]


@pytest.mark.parametrize(
    ("accelerators", "per_node"),
    [("H100", 1), ("H100:2", 2), ({"H100": 1}, 1), (["A100:8", "H100:2"], 2), ({"H100": None}, 1)],
)
def test_gpus_that_are_there_are_given(gpus: list[str], accelerators: Any, per_node: int) -> None:
    gpus += ["NVIDIA H100 80GB HBM3"] * 2
    spec = {"resources": {"accelerators": accelerators}}
    assert paths(spec) == []
    assert [len(gpus) for gpus in choose_gpus(spec, set())] == [per_node]


def test_nodes_do_not_share_a_gpu(gpus: list[str]) -> None:
    gpus += ["NVIDIA H100 80GB HBM3"] * 2
    assert paths({"num_nodes": 3, "resources": {"accelerators": "H100"}}) == [
        "resources.accelerators"
    ]


def test_gpus_of_other_jobs_are_not_given_again(gpus: list[str]) -> None:
    gpus += ["NVIDIA A100", "NVIDIA H100", "NVIDIA H100", "NVIDIA H100"]
    spec = {"num_nodes": 2, "resources": {"accelerators": "H100"}}
    assert choose_gpus(spec, {1}) == [[2], [3]]
    with pytest.raises(NoCapacityError):
        choose_gpus(spec, {1, 2})


def test_a_node_sees_its_own_gpus_and_no_others(gpus: list[str]) -> None:
    assert gpu_environment([]) == {"SKYPILOT_NUM_GPUS_PER_NODE": "0"}
    gpus += ["NVIDIA H100"] * 3
    assert gpu_environment([1, 2])["CUDA_VISIBLE_DEVICES"] == "1,2"
    assert gpu_environment([])["CUDA_VISIBLE_DEVICES"] == ""
