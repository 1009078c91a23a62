"""The files of `examples` that how-tos print, as jobs on a real portal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.test_dags import ended
from tests.portal_process import CHECKOUT, PortalProcess

EXAMPLES = CHECKOUT / "examples"
# In a job the client is where its user installed it; here it is beside this interpreter.
WITH_CLIENT = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"

# Tests of the same portal may have made further projects.
IN_DEFAULT = ("--project", "default")


@pytest.mark.parametrize(
    ("file", "results"),
    [
        ("plain_multinode/job.yaml", ["node 1 of 2", "only the head node does this"]),
        ("metrics/job.yaml", ["step=999 loss=0.001 lr=0.001"]),
        ("child_jobs/job.yaml", ["trained until step 1000", "trained until step 2000"]),
    ],
)
def test_a_job_of_an_example_runs_as_it_is(
    portal: PortalProcess, file: str, results: list[str]
) -> None:
    path = str(EXAMPLES / file)
    done = portal.mportal("submit", *IN_DEFAULT, "--follow", "-e", WITH_CLIENT, "-f", path)
    assert done.returncode == 0, done.stdout + done.stderr + portal.logs()
    for result in results:
        assert result in done.stdout


def test_the_pipeline_and_the_sweep_run_every_job(portal: PortalProcess) -> None:
    def submit(file: str, *options: str) -> str:
        command = ("submit", *IN_DEFAULT, *options, "-e", WITH_CLIENT, "-f", str(EXAMPLES / file))
        return portal.mportal(*command).stdout

    stages = [int(number) for number in submit("pipeline/pipeline.yaml", "-q").split()]
    array = json.loads(submit("sweep/job.yaml", "-o", "json"))
    jobs = ended(portal, [*stages, *(job["id"] for job in array["jobs"])])
    names = ["prepare", "experiment-2", *(f"sweep-{number}" for number in range(6))]
    assert [(job["name"], job["status"]) for job in jobs] == [(n, "SUCCEEDED") for n in names]


def test_programs_submit_and_follow_jobs_over_rest(portal: PortalProcess, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: followed\nrun: echo a line\n")
    (tmp_path / "eval.yaml").write_text((EXAMPLES / "child_jobs/eval.yaml").read_text())
    variables = {
        "MPORTAL_URL": portal.url,
        "MPORTAL_TOKEN": portal.token,
        "MPORTAL_PROJECT": "default",
    }

    def run(program: str) -> str:
        command = [sys.executable, str(EXAMPLES / program)]
        environment = {**os.environ, **variables}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert run("follow/follow.py") == "0 a line\nSUCCEEDED\n"
    assert "python train.py" in run("project_file/show.py")
    run("child_jobs/submit.py")
    listed = json.loads(portal.mportal("ps", *IN_DEFAULT, "--name", "eval", "-o", "json").stdout)
    assert listed
