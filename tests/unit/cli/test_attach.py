"""mportal attach and mportal dev: which job, which program, and what remains."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from monarch_client.gateway import opening
from monarch_client.rest.config import Config, signed_in
from tests.unit.rest.fake_portal import job_json, ok, page

CONFIG = Config("http://portal", "mpt_x", "rl")
JOBS = "POST /projects/rl/jobs"
# Exits with 3 if it is attached to the job.
PROGRAM = "import os, sys; sys.exit(3 * (os.environ['MPORTAL_ATTACH'] == 'rl/42'))"
# Exits with 3 if a process whose parent has ended is gone after its own end, and no zombie.
WITH_AN_ORPHAN = """
pid=$(bash -c 'sleep 0.1 >/dev/null & echo $!')
for _ in $(seq 300); do
    [ -e /proc/$pid ] || exit 3
    sleep 0.01
done
"""
RUNNING = job_json(status="RUNNING")


@pytest.fixture
def portal(portal):
    portal.on(JOBS, ok(job_json()))
    portal.on("GET /projects/rl/jobs/42", ok(RUNNING))
    portal.on("GET /projects/rl/jobs/42/attempts", page([]))
    portal.on("POST /projects/rl/jobs/42/actions/cancel", ok(RUNNING))
    portal.on("GET /projects/rl/jobs", page([RUNNING]))
    return portal


@pytest.mark.parametrize("job", ["42", "hello", "rl/42"])
def test_a_program_is_attached_to_a_job_by_number_or_name(mportal, portal, job):
    done = mportal("attach", job, "--", sys.executable, "-c", PROGRAM)
    assert done.exit_code == 3
    listed = portal.seen("GET /projects/rl/jobs")
    names = [dict(request.url.params) for request in listed]
    assert names == ([{"status": "RUNNING", "name": "hello", "limit": "1"}] * (job == "hello"))


def ppo(status: str, **fields: object) -> dict[str, object]:
    label = status.lower().replace("_", " ")
    return job_json(id=7, name="ppo", status=status, status_label=label, **fields)


NOT_RUNNING = [
    ([], 2, "Project rl has no job named 'ppo'. See: mportal ps --project rl"),
    (
        [ppo("FAILED", is_final=True)],
        125,
        "Job 7 (ppo) has ended: failed. Run it again: mportal rerun rl/7",
    ),
    ([ppo("QUEUED")], 125, "Job 7 (ppo) is not running: queued. See: mportal why rl/7"),
    ([ppo("SETTING_UP")], 125, "Job 7 (ppo) is not running: setting up. See: mportal get rl/7"),
]


@pytest.mark.parametrize("command", ["attach", "sync", "ssh"])
@pytest.mark.parametrize("case", NOT_RUNNING, ids=["none", "ended", "queued", "starting"])
def test_a_name_that_no_running_job_has_is_reported_with_what_the_newest_job_does(
    mportal, portal, monkeypatch, command, case
):
    jobs, exit_code, message = case
    portal.on("GET /projects/rl/jobs", page([]), page(jobs))
    monkeypatch.setattr(opening, "load", lambda _environment: CONFIG)
    monkeypatch.setattr(opening, "signed_in", lambda config: signed_in(config, **portal.options()))
    done = mportal(command, "ppo")
    assert (done.exit_code, done.stderr) == (exit_code, f"Error: {message}\n")


@pytest.mark.parametrize("command", ["attach", "sync", "ssh"])
def test_a_token_in_place_of_a_job_is_sent_nowhere_and_not_shown(mportal, portal, command):
    done = mportal(command, "mpt_" + "a" * 40)
    assert (done.exit_code, "is a token" in done.stderr) == (2, True)
    assert "aaaa" not in done.stderr
    assert portal.seen("GET /projects/rl/jobs") == []


def test_without_a_program_and_a_terminal_it_says_how_to_use_it(mportal, portal):
    done = mportal("attach", "42")
    assert done.exit_code == 2
    assert "mportal attach 42 -- python program.py" in done.stdout


def test_a_program_that_is_not_there_is_named(mportal, portal):
    done = mportal("attach", "42", "--", "/no/such/program")
    assert done.exit_code == 127
    assert "/no/such/program cannot be run" in done.stderr


def test_processes_whose_parents_have_ended_are_reaped_while_the_program_runs(mportal):
    assert mportal("attach", "42", "--", "bash", "-c", WITH_AN_ORPHAN).exit_code == 3


def test_dev_submits_workers_without_a_driver_and_ends_them_after_the_program(mportal, portal):
    done = mportal(
        "dev", "--mesh", "a=2", "--mesh", "b=1", "--gpus", "H100:8", "--idle", "5", "--",
        sys.executable, "-c", PROGRAM,
    )  # fmt: skip
    assert done.exit_code == 3, done.stderr
    assert yaml.safe_load(portal.seen(JOBS)[0].content) == {
        "name": "dev",
        "num_nodes": 3,
        "resources": {"accelerators": "H100:8"},
        "portal": {"meshes": {"a": 2, "b": 1}, "gateway": True, "idle": {"minutes": 5}},
    }
    assert len(portal.seen("POST /projects/rl/jobs/42/actions/cancel")) == 1


def test_dev_keeps_workers_and_takes_a_specification(mportal, portal, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("portal:\n  meshes: {a: 1}\n")
    done = mportal(
        "dev", "-f", str(tmp_path / "job.yaml"), "--keep", "--", sys.executable, "-c", PROGRAM
    )
    assert done.exit_code == 3, done.stderr
    assert "gateway: true" in portal.seen(JOBS)[0].content.decode()
    assert "mportal attach 42" in done.stderr
    assert portal.seen("POST /projects/rl/jobs/42/actions/cancel") == []


def test_dev_refuses_several_jobs(mportal, portal, tmp_path: Path):
    (tmp_path / "jobs.yaml").write_text("name: a\nrun: x\n---\nname: b\nrun: y\n")
    done = mportal("dev", "-f", str(tmp_path / "jobs.yaml"))
    assert done.exit_code == 2
    assert "describes 2 jobs, and this starts one" in done.stderr
    assert portal.seen(JOBS) == []


def test_dev_runs_no_program_when_the_job_ends_before(mportal, portal):
    portal.on("GET /projects/rl/jobs/42", ok(job_json(status="FAILED", is_final=True)))
    done = mportal("dev", "--", sys.executable, "-c", PROGRAM)
    assert done.exit_code == 1


def test_a_program_connects_with_the_folder_of_its_code(mportal, tmp_path: Path):
    program = "import os, sys; sys.exit(3 * (os.environ['MPORTAL_SYNC'] == sys.argv[1]))"
    done = mportal(
        "attach", "42", "--sync", str(tmp_path), "--", sys.executable, "-c", program, str(tmp_path)
    )
    assert done.exit_code == 3, done.stderr


def test_dev_without_a_program_prints_what_a_notebook_needs(mportal):
    done = mportal("dev", "--mesh", "a=1", "--keep")
    assert 'connection = connect("rl/42")' in done.stderr
    assert f"a kernel of {sys.prefix}" in done.stderr
