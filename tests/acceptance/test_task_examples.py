"""The programs of `examples/tasks` as jobs on a mesh of two nodes."""

from __future__ import annotations

import pytest

from tests.portal_process import CHECKOUT, PortalProcess

pytestmark = [pytest.mark.monarch, pytest.mark.feature("S4.1")]
JOB = CHECKOUT / "examples" / "tasks" / "job.yaml"


@pytest.mark.parametrize(
    ("program", "result"),
    [
        ("sweep.py", "best of 40 settings: degree 3, penalty 0.001"),
        ("parameter_server.py", "after 300 gradients the greatest error of a weight is 0.0"),
        ("map_reduce.py --megabytes 20", "in order: True, complete: True"),
    ],
)
def test_a_program_runs_on_the_mesh_of_a_job(
    portal: PortalProcess, program: str, result: str
) -> None:
    said = portal.mportal("submit", "--follow", "-e", f"PROGRAM={program}", "-f", str(JOB))
    assert said.returncode == 0, said.stdout + said.stderr + portal.logs()
    assert result in said.stdout
