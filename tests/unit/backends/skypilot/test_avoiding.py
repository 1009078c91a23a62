"""Nodes left out of a next launch: on one Slurm cluster, and nowhere else."""

from __future__ import annotations

import pytest

from jobs.backends.base import AvoidedNode, LaunchRequest
from jobs.backends.skypilot.avoiding import config_avoiding, why_not_avoided
from jobs.backends.skypilot.task import task_for

SLURM = {"resources": {"infra": "slurm/main/gpu"}}


def node(host: str = "gpu-7", infra: str = "slurm/main/gpu") -> AvoidedNode:
    return AvoidedNode(host, infra)


def request(spec: dict, *nodes: AvoidedNode) -> LaunchRequest:
    return LaunchRequest(
        cluster_name="mp1-a-1-1",
        project_slug="rl",
        job_id=1,
        job_name="x",
        attempt_id=2,
        attempt_number=2,
        spec=spec,
        num_nodes=1,
        portal_url="http://portal",
        token="secret",
        avoid=nodes,
    )


@pytest.mark.feature("P3.4")
def test_slurm_gets_the_nodes_to_exclude():
    task = task_for(request(SLURM, node("gpu-7"), node("gpu-3")), "/staged")
    assert task["config"] == {"slurm": {"sbatch_options": {"exclude": "gpu-3,gpu-7"}}}


def test_what_an_administrator_wrote_stays_also_nodes_that_were_left_out():
    config = {"slurm": {"sbatch_options": {"qos": "high", "x": "gpu-1"}, "quota": {"queue": "a"}}}
    found = config_avoiding({**SLURM, "config": config}, [node()])
    assert found == {
        "slurm": {
            "sbatch_options": {"qos": "high", "exclude": "gpu-1,gpu-7"},
            "quota": {"queue": "a"},
        }
    }
    assert config["slurm"]["sbatch_options"] == {"qos": "high", "x": "gpu-1"}


def test_without_nodes_to_avoid_the_task_is_what_it_was():
    assert "config" not in task_for(request(SLURM), "/staged")


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"resources": {"infra": "aws/us-east-1"}}, node("ip-10-0-0-1", "aws/us-east-1")),
        ({"resources": {"infra": "kubernetes/main"}}, node("pod-1", "kubernetes/main")),
        (SLURM, node(infra="")),
        ({"resources": {"infra": "slurm/other"}}, node()),
        ({"resources": {}}, node()),
        ({"resources": {"any_of": [{"infra": "slurm/main"}, {"infra": "aws"}]}}, node()),
        (SLURM, node(host="")),
        (SLURM, node(host="a,b")),
        (SLURM, node(host="gpu-7\n#SBATCH --account=root")),
        (SLURM, node(host="gpu-[1-9]")),
    ],
)
def test_elsewhere_and_by_a_name_that_is_none_the_reason_is_reported_and_nothing_is_done(
    spec, found
):
    assert why_not_avoided(spec, found)
    assert config_avoiding(spec, [found]) == {}


@pytest.mark.parametrize(
    "resources",
    [
        {"infra": "slurm/main"},
        {"cloud": "slurm", "region": "main"},
        {"any_of": [{"infra": "slurm/main/a"}, {"infra": "slurm/main/b"}]},
        {"infra": "slurm/main", "ordered": [{"accelerators": "H100:8"}, {"accelerators": "A100"}]},
    ],
)
def test_every_way_to_name_one_slurm_cluster_is_understood(resources):
    assert why_not_avoided({"resources": resources}, node()) == ""
