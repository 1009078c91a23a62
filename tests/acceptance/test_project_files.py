"""The job of a folder whose own file describes it, with its example."""

from __future__ import annotations

import json

import pytest

from tests.portal_process import CHECKOUT, PortalProcess

EXAMPLE = CHECKOUT / "examples" / "project_file"


@pytest.mark.feature("S2.8")
def test_the_example_runs_on_its_two_nodes_without_flags(portal: PortalProcess) -> None:
    planned = portal.mportal("run", "--dry-run", "train.py", cwd=EXAMPLE)
    rows = [" ".join(row.split()) for row in planned.stdout.splitlines()]
    assert "num_nodes 2 pyproject.toml:10" in rows
    assert any(row.startswith("If submitted now, queue default: It starts") for row in rows)
    done = portal.mportal("run", "train.py", "--rate", "0.1", cwd=EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr + portal.logs()
    assert "node 0: 0.813" in done.stdout and "node 1: 0.813" in done.stdout
    [job] = json.loads(portal.mportal("ps", "--name", "project-file", "-o", "json").stdout)
    assert job["num_nodes"] == 2
