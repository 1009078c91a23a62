"""Templates on a real portal: one is saved, filled in and run to its end."""

from __future__ import annotations

import pytest

from tests.portal_process import PortalProcess

TEMPLATE = """
name: grid
parameters:
  nodes: {type: integer, minimum: 1, maximum: 8, default: 1}
  word: {default: hello}
---
name: grid
num_nodes: ${{ nodes }}
run: echo ${{ word }} from node $SKYPILOT_NODE_RANK
"""


@pytest.mark.feature("S2.5")
def test_a_template_is_saved_and_its_job_runs(portal: PortalProcess, tmp_path) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(TEMPLATE)
    saved = portal.mportal("template", "save", str(file))
    assert saved.stdout == "grid: version 1\n", saved.stderr
    done = portal.mportal("template", "run", "grid", "-P", "nodes=2", "-P", "word=hi", "--follow")
    assert done.returncode == 0, done.stderr
    assert "hi from node 0" in done.stdout
    assert "hi from node 1" in done.stdout
    refused = portal.mportal("template", "run", "grid", "-P", "nodes=9")
    assert "nodes must be a whole number from 1 to 8." in refused.stderr
    assert refused.returncode
