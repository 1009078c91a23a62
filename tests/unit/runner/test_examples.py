"""The examples' specifications, as users submit them. Other tests run them with real workers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from monarch_client.spec import JobSpec
from monarch_client.spec.templates import JobTemplate

FOLDER = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted(FOLDER.glob("*/job.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_is_a_sound_spec_whose_meshes_fill_its_nodes(path: Path) -> None:
    spec = JobSpec.parse(path.read_text())
    assert spec.name == path.parent.name.replace("_", "-")
    meshes = spec.portal.meshes or {}
    assert not meshes or sum(meshes.values()) == spec.num_nodes


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_what_an_example_runs_lies_beside_it(path: Path) -> None:
    for program in path.parent.glob("*.py"):
        ast.parse(program.read_text())
    assert "train.py" not in path.read_text() or (path.parent / "train.py").exists()


def test_the_template_is_filled_in_to_a_sound_spec() -> None:
    template = JobTemplate.parse((FOLDER / "template" / "train.yaml").read_text())
    spec = JobSpec.parse(template.filled_in({"data": "/data"}))
    assert (spec.name, spec.num_nodes, spec.envs["DATA"]) == ("train-bf16", 2, "/data")
