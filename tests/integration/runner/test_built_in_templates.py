"""The built-in templates, run as jobs of two nodes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.templating.find import built_in_templates
from monarch_client.spec import JobSpec
from monarch_client.spec.array_keys import combinations
from tests.each_case import check_each
from tests.fake_ca import make_authority
from tests.runner_harness import RunnerRig

# `make tensors` installs it.
TORCH = Path(os.environ.get("MPORTAL_TEST_TORCH", "/nowhere"))
MakeRig = Callable[..., RunnerRig]
# Stand-ins for the program and the module, if Ray is not installed: a head that listens until it
# is stopped, and workers that join it.
RAY = r"""#!/bin/sh
echo "ray $*" >> "$RAY_CALLS"
case "$*" in
    *--head*) python -m http.server --bind "${SKYPILOT_NODE_IPS%%
*}" "$RAY_PORT" >/dev/null 2>&1 & echo $! > "$RAY_CALLS.head" ;;
    stop*) kill "$(cat "$RAY_CALLS.head")" ;;
    *--address*) while kill -0 "$(cat "$RAY_CALLS.head")"; do sleep 0.1; done ;;
esac 2>/dev/null
"""
RAY_MODULE = """
import os
def init(**options): assert options["address"] == "auto"
def nodes():
    joined = open(os.environ["RAY_CALLS"]).read().count("--address")
    return [{"Alive": True}] * (1 + joined)
def cluster_resources(): return {"CPU": 2.0}
"""


def spec_of(name: str, **values: Any) -> JobSpec:
    return JobSpec.parse(built_in_templates()[name].template.filled_in(values), for_server=True)


def run_template(make_rig: MakeRig, name: str, values: dict[str, Any], **envs: str) -> list[str]:
    """Run the job of a template and return the lines that it printed; it must succeed."""
    spec = spec_of(name, **values)
    meshes = dict(spec.portal.meshes) or None
    tls = {"tls": make_authority()} if meshes else {}
    settings = {"run": spec.run, "meshes": meshes, "envs": {**spec.envs, **envs}}
    rig = make_rig(nodes=spec.num_nodes, **settings, **tls)
    rig.config["timeouts"].update(workers_s=120)
    end = rig.run(300)
    assert end["reason"] == "COMPLETED", [*end["evidence"], *rig.ingest.texts("stderr", 0)][-15:]
    return [text for rank in range(spec.num_nodes) for text in rig.ingest.texts("stdout", rank)]


def with_torch() -> dict[str, str]:
    assert (TORCH / "torch").is_dir(), "There is no torch to test with: run `make tensors`."
    return {"PYTHONPATH": str(TORCH), "GLOO_SOCKET_IFNAME": "lo", "CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.feature("S2.5")
def test_the_scripts_of_all_templates_are_shell_and_their_defaults_a_job():
    def check(name: str) -> None:
        spec = spec_of(name)
        subprocess.run(["bash", "-n"], input=spec.run, text=True, check=True)

    check_each(built_in_templates(), check)


@pytest.mark.feature("S2.5")
def test_hello_mesh_is_answered_by_every_process(make_rig: MakeRig) -> None:
    lines = run_template(make_rig, "hello-mesh", {"hosts": 2, "procs": 2})
    assert "4 processes answered" in lines


def test_a_sweep_is_one_job_for_each_combination() -> None:
    spec = spec_of("sweep", lrs="0.1,0.2,0.3", seeds="1,2", command="echo $LR\necho $SEED")
    assert len(list(combinations(spec.portal.array))) == 6
    assert spec.run == "echo $LR\necho $SEED\n"


@pytest.mark.feature("S3.5")
def test_ray_runs_its_command_when_all_nodes_have_joined(make_rig: MakeRig, tmp_path: Path) -> None:
    ray = tmp_path / "bin" / "ray"
    ray.parent.mkdir()
    ray.write_text(RAY)
    ray.chmod(0o755)
    (ray.parent / "ray.py").write_text(RAY_MODULE)
    envs = {
        "PATH": f"{ray.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ray.parent),
        "RAY_CALLS": str(tmp_path / "calls"),
    }
    lines = run_template(make_rig, "ray", {"nodes": 2, "port": 6399}, **envs)
    assert "2 nodes are in the Ray cluster" in lines
    assert any(re.match(r"2 nodes \{", line) for line in lines), lines
    assert "ray stop" in (tmp_path / "calls").read_text()


@pytest.mark.tensors
@pytest.mark.feature("S3.5")
@pytest.mark.timeout(400)
def test_torchrun_sums_over_the_processes_of_two_nodes(make_rig: MakeRig) -> None:
    lines = run_template(make_rig, "torchrun", {"nodes": 2, "procs": 2}, **with_torch())
    sums = sorted(line for line in lines if line.startswith("rank "))
    assert sums == [f"rank {rank} of 4: the sum is 10, expected 10" for rank in range(4)]


@pytest.mark.tensors
@pytest.mark.feature("S2.5")
@pytest.mark.timeout(400)
def test_monarch_ddp_trains_the_same_weights_on_two_hosts(make_rig: MakeRig) -> None:
    lines = run_template(make_rig, "monarch-ddp", {"hosts": 2, "procs": 2}, **with_torch())
    assert "4 ranks have the same weights" in lines
    losses = re.findall(r"loss ([0-9.]+) -> ([0-9.]+)", "\n".join(lines))
    assert len(losses) == 4
    assert all(float(last) < float(first) for first, last in losses)
