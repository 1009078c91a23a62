"""The plain job of the how-to, with torch.distributed over two nodes."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from monarch_client.spec import JobSpec
from tests.integration.runner.test_built_in_templates import with_torch
from tests.portal_process import CHECKOUT
from tests.runner_harness import RunnerRig

EXAMPLE = CHECKOUT / "examples" / "plain"


@pytest.mark.tensors
@pytest.mark.timeout(400)
def test_the_plain_example_adds_the_numbers_of_both_nodes(
    make_rig: Callable[..., RunnerRig],
) -> None:
    spec = JobSpec.parse((EXAMPLE / "job.yaml").read_text())
    rig = make_rig(nodes=spec.num_nodes, run=spec.run, meshes=None, envs=with_torch())
    for node in rig.config["nodes"]:
        shutil.copytree(EXAMPLE, rig.root(node["rank"]) / "workdir", dirs_exist_ok=True)
    assert rig.run(300)["reason"] == "COMPLETED", rig.ingest.texts("stderr", 0)[-15:]
    lines = [text for rank in range(2) for text in rig.ingest.texts("stdout", rank)]
    assert sorted(line for line in lines if line.startswith("rank ")) == [
        f"rank {rank} of 2: the sum is 3" for rank in range(2)
    ]
