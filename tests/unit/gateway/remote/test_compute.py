"""The job that the portal makes of a description of machines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from monarch_client.gateway import Compute, Image
from monarch_client.gateway.remote.compute import GPU_VARIABLE, defaults_for_program, spec_of
from monarch_client.spec import JobSpec

PORTAL = {"meshes": {"workers": 2}, "idle": {"minutes": 30}, "gateway": True}


def test_a_description_becomes_a_job_without_a_driver() -> None:
    image = Image(name="mine", image_id="docker:ubuntu").pip_install(["torchmonarch", "numpy<3"])
    compute = Compute(gpu=8, gpu_type="H100", cpu=32, memory="256Gi", replicas=2, image=image)
    assert spec_of(compute, "job", {}) == {
        "name": "job",
        "num_nodes": 2,
        "setup": "set -e\npython3 -m pip install 'numpy<3'",
        "resources": {
            "accelerators": "H100:8",
            "cpus": "32+",
            "memory": "256Gi+",
            "image_id": "docker:ubuntu",
        },
        "portal": PORTAL,
    }


def test_the_portal_accepts_each_form_of_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GPU_VARIABLE, "A100")
    for compute in (
        {"gpu": 1, "replicas": 2},
        Compute(gpu=1, cpu="4", memory="64GB", replicas=2, infra="slurm"),
        SimpleNamespace(gpu=1, replicas=2),
        {"num_nodes": 2, "resources": {"accelerators": "A100:1"}, "setup": "true"},
        {"portal": {"meshes": {"workers": 2}}},
    ):
        spec = spec_of(compute, "job", {})
        assert spec["portal"] == PORTAL
        JobSpec.parse(spec, for_server=True)


def test_meshes_divide_the_machines() -> None:
    spec = spec_of(Compute(replicas=3), "job", {"trainers": 2, "generators": 1})
    assert spec["portal"]["meshes"] == {"trainers": 2, "generators": 1}


@pytest.mark.parametrize(
    ("compute", "meshes", "named"),
    [
        (Compute(gpu=1), {}, "which GPUs"),
        (Compute(replicas=0), {}, "replicas is a number of hosts, not 0"),
        (Compute(replicas=2), {"x": 3}, "meshes need 3 hosts, and compute has 2"),
        ({"gpu": 1, "disk": 2}, {}, "compute has no disk"),
        ({"workdir": "."}, {}, "mportal dev"),
        ("H100:8", {}, "compute is a Compute"),
    ],
)
def test_a_description_that_cannot_be_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch, compute: object, meshes: dict[str, int], named: str
) -> None:
    monkeypatch.delenv(GPU_VARIABLE, raising=False)
    with pytest.raises((ValueError, TypeError), match=named):
        spec_of(compute, "job", meshes)


PORTAL_YAML = """\
name: ours
num_nodes: 3
workdir: .
run: python train.py
setup: pip install numpy
resources: {infra: slurm, cpus: 2}
portal: {queue: night, project: rl}
"""


@pytest.mark.feature("S2.8")
def test_the_project_files_of_the_folder_give_the_values_that_compute_lacks(tmp_path: Path) -> None:
    (tmp_path / "portal.yaml").write_text(PORTAL_YAML)
    defaults = defaults_for_program(tmp_path)
    assert spec_of(Compute(cpu=8, replicas=2), None, {}, defaults) == {
        "name": "ours",
        "num_nodes": 2,
        "setup": "pip install numpy",
        "resources": {"cpus": "8+", "infra": "slurm"},
        "portal": {**PORTAL, "queue": "night", "project": "rl"},
    }
    assert spec_of({"setup": ""}, None, {}, defaults)["portal"]["meshes"] == {"workers": 3}
    assert spec_of({}, "mine", {"a": 2}, defaults)["name"] == "mine"
    assert spec_of({}, None, {"a": 2}, defaults)["num_nodes"] == 2


def test_the_program_replaces_the_command_and_the_folder_of_project_files(tmp_path: Path) -> None:
    (tmp_path / "portal.yaml").write_text(PORTAL_YAML)
    assert not {"run", "workdir"} & spec_of({}, None, {}, defaults_for_program(tmp_path)).keys()
    url = "workdir: {url: https://github.com/acme/rl}\n"
    (tmp_path / "portal.yaml").write_text(url)
    spec = spec_of({}, None, {}, defaults_for_program(tmp_path))
    assert spec["workdir"] == {"url": "https://github.com/acme/rl"}
