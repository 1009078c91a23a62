"""Commands in a folder whose project files describe its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.test_submit import FORECAST, JOBS, UPLOADED, UPLOADS, job_json, sent
from tests.unit.rest.fake_portal import ok, problem

pytestmark = pytest.mark.feature("S2.8")
PLAN = "POST /projects/rl/plan"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a program and both project files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "portal.yaml").write_text("num_nodes: 2\nresources:\n  accelerators: A100:8\n")
    (tmp_path / "pyproject.toml").write_text('[tool.mportal]\nname = "ppo"\nportal.priority = 70\n')
    return tmp_path


@pytest.fixture(autouse=True)
def takes_jobs(portal: Any) -> None:
    portal.on(JOBS, ok(job_json(), 201))
    portal.on(UPLOADS, ok(UPLOADED, 201))


def test_run_needs_no_flags_in_a_folder_that_describes_its_job(mportal, portal, folder):
    result = mportal("run", "-d", "train.py", "--lr", "1")
    assert result.exit_code == 0, result.stderr
    job = sent(portal)
    assert job.pop("workdir").startswith("upload:")
    assert job == {
        "name": "ppo",
        "num_nodes": 2,
        "resources": {"accelerators": "A100:8"},
        "run": "python train.py --lr 1",
        "portal": {"priority": 70},
    }


def test_flags_and_named_files_come_first(mportal, portal, folder):
    mportal("run", "-d", "-N", "3", "--gpus", "H100:1", "--name", "mine", "ls")
    assert (sent(portal)["num_nodes"], sent(portal)["name"]) == (3, "mine")
    assert sent(portal)["resources"] == {"accelerators": "H100:1"}
    (folder / "job.yaml").write_text("run: ls\nnum_nodes: 4\nportal: {queue: urgent}\n")
    portal.requests.clear()
    mportal("submit", "job.yaml")
    assert sent(portal)["num_nodes"] == 4
    assert sent(portal)["portal"] == {"queue": "urgent", "priority": 70}


def test_submit_without_a_file_takes_that_of_the_folder(mportal, portal, folder):
    (folder / "portal.yaml").write_text("run: python train.py\n")
    assert mportal("submit").exit_code == 0
    assert (sent(portal)["run"], sent(portal)["name"]) == ("python train.py", "ppo")
    (folder / "portal.yaml").unlink()
    (folder / "pyproject.toml").write_text('[tool.mportal]\nrun = "ls"\n')
    portal.requests.clear()
    assert mportal("submit").exit_code == 0
    assert sent(portal)["run"] == "ls"
    (folder / "pyproject.toml").unlink()
    assert "Which file?" in mportal("submit").stderr


def test_a_dry_run_shows_where_each_value_comes_from_and_the_plan(mportal, portal, folder):
    plan = {"backend": "fake", "candidates": [], "chosen": None, "reasons": [], "problem": "",
            "is_pending": False, "max_duration_s": None, "usd_per_hour": None, "usd": None,
            "warnings": [], "queue": "default", "start": FORECAST}  # fmt: skip
    portal.on(PLAN, ok(plan))
    result = mportal("run", "--dry-run", "-e", "A=1", "train.py")
    rows = [" ".join(row.split()) for row in result.stdout.splitlines()]
    assert {
        "run python train.py the command line",
        "name ppo pyproject.toml:2",
        "num_nodes 2 portal.yaml:1",
        "resources.accelerators A100:8 portal.yaml:3",
        "portal.priority 70 pyproject.toml:3",
        "workdir . portal.yaml",
        "envs.A 1 the command line",
        "If submitted now, queue default: Needs 2 nodes; 1 of 4 is free on fake.",
    } <= set(rows)
    assert not portal.seen(JOBS) and not portal.seen(UPLOADS)
    assert yaml.safe_load(portal.seen(PLAN)[0].content)["workdir"] is None
    portal.on(PLAN, problem(503, "unavailable", "Not now."))
    assert "No launch plan: Not now." in mportal("run", "--dry-run", "ls").stderr
    (folder / "job.yaml").write_text("# x\nrun: ls\n")
    rows = mportal("submit", "--dry-run", "job.yaml").stdout.splitlines()
    assert "run ls job.yaml:2" in {" ".join(row.split()) for row in rows}


def test_an_error_about_a_default_names_its_file_and_line(mportal, portal, folder):
    error = {"path": "resources.accelerators", "line": 3, "code": "bad_value",
             "message": "No A100 here.", "suggestion": None, "document": 0}  # fmt: skip
    portal.on(JOBS, problem(422, "invalid_spec", errors=[error]))
    result = mportal("run", "-d", "ls")
    assert result.exit_code == 2
    assert "portal.yaml:3: No A100 here." in result.stderr
    (folder / "portal.yaml").write_text("num_node: 2\n")
    result = mportal("run", "-d", "ls")
    assert result.exit_code == 2
    assert "portal.yaml:1: There is no key 'num_node'. Did you mean num_nodes?" in result.stderr
