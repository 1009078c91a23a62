"""The examples' specifications, as users submit them. Other tests run them with real workers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from monarch_client.spec import JobSpec

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/job.yaml"))


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
