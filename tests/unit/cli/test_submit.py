"""mportal submit and mportal run: what is sent, what travels with it, how errors look."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.unit.rest.fake_portal import (
    MOMENT,
    array_json,
    ended_job,
    event,
    job_json,
    line_json,
    ok,
    page,
    problem,
    stream,
)

JOBS = "POST /projects/rl/jobs"
UPLOADS = "POST /projects/rl/uploads"
UPLOADED = {
    "reference": "upload:x",
    "digest": "x",
    "size_bytes": 1,
    "file_count": 1,
    "created_at": MOMENT,
}


@pytest.fixture
def spec(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("# my job\nname: hello\nrun: echo hello\n")
    return file


FORECAST = {
    "code": "no_room", "reason": "CAPACITY",
    "sentence": "Needs 2 nodes; 1 of 4 is free on fake.", "position": 1, "of": 1, "ahead": [],
    "limit": None, "holders": [], "expected_at": None, "basis": "", "no_estimate": "",
}  # fmt: skip


def sent(portal):
    return yaml.safe_load(portal.seen(JOBS)[-1].content)


def test_submit_says_where_the_job_can_be_seen(mportal, portal, spec):
    portal.on(JOBS, ok(job_json(), 201))
    result = mportal("submit", "-f", str(spec))
    assert result.output == "Job 42 (hello): http://portal/rl/jobs/42\n"
    assert result.exit_code == 0
    assert portal.seen(JOBS)[0].content.decode() == spec.read_text()


def test_the_file_may_stand_alone_as_with_other_tools(mportal, portal, spec):
    portal.on(JOBS, ok(job_json(), 201))
    assert mportal("submit", "-q", str(spec)).stdout == "42\n"
    assert mportal("submit", "-q", "-", input="run: echo\n").stdout == "42\n"


def test_no_file_is_a_mistake_that_says_what_is_meant(mportal, portal, spec):
    none = mportal("submit")
    assert (none.exit_code, "mportal submit job.yaml" in none.stderr) == (2, True)
    missing = mportal("submit", "nowhere.yaml")
    assert (missing.exit_code, "nowhere.yaml" in missing.stderr) == (2, True)
    assert portal.requests == []


def test_a_job_can_be_submitted_held(mportal, portal, spec):
    portal.on(JOBS, ok(job_json(wait_reason="HELD", wait_message="Held by alice."), 201))
    result = mportal("submit", "--hold", str(spec))
    assert sent(portal)["portal"] == {"hold": True}
    assert portal.seen(JOBS)[0].content.startswith(b"# my job\n")
    assert result.stdout.startswith("Job 42 (hello): ")
    assert mportal("run", "-d", "--hold", "true").exit_code == 0
    assert sent(portal)["portal"] == {"hold": True}


@pytest.mark.parametrize("words", [("run", "-d", "--hold", "true"), ("submit", "--hold", "-")])
def test_a_held_job_is_printed_with_the_command_that_releases_it(mportal, portal, words):
    portal.on(JOBS, ok(job_json(wait_reason="HELD", can_release=True), 201))
    said = mportal(*words, input="run: echo\n").stderr
    assert "Job 42 is held until: mportal release 42" in said


def test_held_jobs_of_one_submission_are_released_with_one_command(mportal, portal, tmp_path):
    held = [job_json(id=number, can_release=True) for number in (1, 2)]
    portal.on("POST /projects/rl/jobs/batch", page(held))
    said = mportal("submit", "-", input="run: a\n---\nrun: b\n").stderr
    assert "2 jobs are held until: mportal release 1 2" in said


def test_quiet_prints_the_id_alone(mportal, portal, spec):
    portal.on(JOBS, ok(job_json(), 201))
    assert mportal("submit", "-q", "-f", str(spec)).stdout == "42\n"


def test_json_is_for_programs(mportal, portal, spec):
    portal.on(JOBS, ok(job_json(), 201))
    assert json.loads(mportal("submit", "-o", "json", "-f", str(spec)).stdout)["id"] == 42
    assert yaml.safe_load(mportal("submit", "-o", "yaml", "-f", str(spec)).stdout)["id"] == 42


def test_name_and_variables_are_set_in_the_text(mportal, portal, spec, monkeypatch):
    monkeypatch.setenv("HERE", "there")
    portal.on(JOBS, ok(job_json(), 201))
    mportal("submit", "-f", str(spec), "--name", "other", "--env", "A=1=2", "-e", "HERE")
    assert sent(portal)["name"] == "other"
    assert sent(portal)["envs"] == {"A": "1=2", "HERE": "there"}
    assert portal.seen(JOBS)[0].content.startswith(b"# my job\n")


def test_a_variable_without_a_value_is_a_mistake(mportal, spec):
    result = mportal("submit", "-f", str(spec), "-e", "NOWHERE")
    assert result.exit_code == 2
    assert "NOWHERE=VALUE" in result.stderr


@pytest.mark.feature("S2.1")
def test_the_workdir_travels_once_and_is_named_by_its_content(mportal, portal, spec, tmp_path):
    spec.write_text("name: hello\nrun: ls\nworkdir: code  # mine\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print(1)\n")
    portal.on(JOBS, ok(job_json(), 201))
    portal.on(UPLOADS, ok(UPLOADED, 201))
    result = mportal("submit", "-f", str(spec))
    assert "Sending code (1 file, " in result.stderr
    reference = sent(portal)["workdir"]
    assert reference.startswith("upload:")
    assert portal.seen(UPLOADS)[0].headers["Content-Type"] == "application/gzip"

    portal.on(f"GET /projects/rl/uploads/{reference.removeprefix('upload:')}", ok(UPLOADED))
    result = mportal("submit", "-f", str(spec))
    assert "Sending" not in result.stderr
    assert len(portal.seen(UPLOADS)) == 1
    assert sent(portal)["workdir"] == reference


def test_local_file_mounts_travel_as_well(mportal, portal, spec, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").touch()
    spec.write_text("run: ls\nfile_mounts: {/data: data, /bucket: 's3://b/k'}\n")
    portal.on(JOBS, ok(job_json(), 201))
    portal.on(UPLOADS, ok(UPLOADED, 201))
    mportal("submit", "-f", str(spec))
    assert sent(portal)["file_mounts"]["/bucket"] == "s3://b/k"
    assert sent(portal)["file_mounts"]["/data"].startswith("upload:")


def with_secret(spec, tmp_path):
    spec.write_text("name: hello\nrun: ls\nworkdir: code\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print(1)\n")
    (tmp_path / "code" / ".env").write_text("TOKEN=x\n")
    (tmp_path / "code" / ".gitignore").write_text(".env\n")


def test_a_dry_run_lists_what_would_travel_and_sends_nothing(mportal, portal, spec, tmp_path):
    with_secret(spec, tmp_path)
    result = mportal("submit", "--dry-run", str(spec))
    assert result.stdout.splitlines() == [
        "workdir: code (2 files, 0 KiB)",
        "  .gitignore  0 KiB",
        "  train.py  0 KiB",
        "Left out:",
        "  .env  (.gitignore:1: .env)",
    ]
    (found,) = json.loads(mportal("submit", "--dry-run", "-o", "json", str(spec)).stdout)
    assert found["left_out"] == [{"path": ".env", "rule": ".gitignore:1: .env"}]
    assert found["files"][1] == {"path": "train.py", "size_bytes": 9}
    run = mportal("run", "--dry-run", "-q", "--workdir", str(tmp_path / "code"), "ls")
    assert run.stdout.split() == [".gitignore", "train.py"]
    assert not portal.requests


def test_verbose_lists_what_travels_and_submits(mportal, portal, spec, tmp_path):
    with_secret(spec, tmp_path)
    portal.on(JOBS, ok(job_json(), 201))
    portal.on(UPLOADS, ok(UPLOADED, 201))
    result = mportal("submit", "-v", str(spec))
    assert "  .env  (.gitignore:1: .env)" in result.stderr
    assert sent(portal)["workdir"].startswith("upload:")


def test_standard_input_is_a_file_too(mportal, portal):
    portal.on(JOBS, ok(job_json(), 201))
    assert mportal("submit", "-q", "-f", "-", input="run: echo\n").stdout == "42\n"


def test_the_project_of_the_file_is_used(mportal, portal, spec):
    spec.write_text("run: ls\nportal: {project: vision}\n")
    portal.on("POST /projects/vision/jobs", ok(job_json(), 201))
    assert mportal("submit", "-f", str(spec)).exit_code == 0


def test_errors_are_shown_in_the_file_and_nothing_is_sent(mportal, portal, spec):
    spec.write_text("name: hello\nrunn: echo\nnum_nodes: none\n")
    result = mportal("submit", "-f", str(spec))
    assert result.exit_code == 2
    assert f"{spec}:2: runn: " in result.stderr
    assert result.stderr.count("Did you mean run?") == 1
    assert "     2 | runn: echo" in result.stderr
    assert "       | ^^^^" in result.stderr
    assert f"{spec}:3: num_nodes must be " in result.stderr
    assert "nothing was submitted" in result.stderr
    assert portal.requests == []


def test_errors_of_the_portal_are_shown_in_the_file_too(mportal, portal, spec):
    row = {"path": "name", "line": 2, "code": "taken", "message": "Taken.", "suggestion": None}
    portal.on(JOBS, problem(422, "invalid_spec", errors=[row]))
    result = mportal("submit", "-f", str(spec))
    assert result.exit_code == 2
    assert f"{spec}:2: name: Taken." in result.stderr
    assert "     2 | name: hello" in result.stderr


def test_run_makes_a_job_of_a_command_and_follows_it(mportal, portal):
    portal.on(JOBS, ok(job_json(), 201))
    portal.on("GET /projects/rl/jobs/42", ok(job_json()), ok(ended_job("FAILED", exit_code=7)))
    portal.on("GET /projects/rl/jobs/42/attempts", page([]))
    lines = event("line", [line_json(1, "hi")], "1:1")
    portal.on("GET /projects/rl/jobs/42/logs/stream", stream(lines, event("end")))
    result = mportal("run", "-N", "2", "--gpus", "A100:8", "--", "python", "train.py", "--lr", "1")
    assert result.exit_code == 7
    assert result.stdout == "hi\n"
    assert sent(portal) == {
        "name": "python",
        "num_nodes": 2,
        "resources": {"accelerators": "A100:8"},
        "run": "python train.py --lr 1",
    }


def test_run_on_spot_machines_shows_its_cost_and_submits_nothing(mportal, portal):
    chosen = {"infra": "aws", "instance_type": "p4d", "cpus": "96", "memory": "1152",
              "accelerators": "A100:8", "use_spot": True, "usd_per_hour": "12.000000",
              "is_chosen": True}  # fmt: skip
    plan = {"backend": "skypilot", "candidates": [chosen], "chosen": chosen, "reasons": [],
            "problem": "", "is_pending": False, "max_duration_s": None,
            "usd_per_hour": "12.000000", "usd": None, "warnings": [], "queue": "default",
            "start": {**FORECAST, "position": 3, "of": 4}}  # fmt: skip
    portal.on("POST /projects/rl/plan", ok(plan))
    result = mportal("run", "--spot", "--gpus", "A100:8", "--estimate-cost", "--dry-run", "x")
    assert result.exit_code == 0, result.stderr
    assert "$12.00" in result.stdout and "spot" in result.stdout
    said = "If submitted now, queue default: Needs 2 nodes; 1 of 4 is free on fake."
    assert said in result.stdout and "Position 3 of 4 in the queue." in result.stdout
    [request] = portal.requests
    assert yaml.safe_load(request.content)["resources"] == {
        "accelerators": "A100:8", "use_spot": True,
    }  # fmt: skip


def test_run_takes_a_line_for_the_shell_as_it_is(mportal, portal):
    portal.on(JOBS, ok(job_json(), 201))
    mportal("run", "--detach", "echo $A | wc -c")
    assert sent(portal)["run"] == "echo $A | wc -c"


def test_run_makes_a_monarch_job_of_meshes(mportal, portal):
    portal.on(JOBS, ok(job_json(), 201))
    mportal("run", "-d", "--mesh", "trainers=2", "--mesh", "generators=1", "./drive.py")
    assert sent(portal)["portal"] == {"meshes": {"trainers": 2, "generators": 1}}
    assert sent(portal)["name"] == "drive-py"
    assert mportal("run", "-d", "--mesh", "trainers", "true").exit_code == 2


def test_several_files_and_documents_are_submitted_together(mportal, portal, spec, tmp_path):
    two = tmp_path / "two.yaml"
    two.write_text("name: a\nrun: echo\n---\nname: b\nrun: echo\nportal: {depends_on: [a]}\n")
    portal.on("POST /projects/rl/jobs/batch", page([job_json(id=1), job_json(id=2), job_json()]))
    result = mportal("submit", "-q", str(spec), str(two), "--env", "A=1")
    assert (result.exit_code, result.stdout) == (0, "1\n2\n42\n")
    body = json.loads(portal.seen("POST /projects/rl/jobs/batch")[0].content)
    documents = [yaml.safe_load(text) for text in body["specs"]]
    assert [each["name"] for each in documents] == ["hello", "a", "b"]
    assert {each["envs"]["A"] for each in documents} == {"1"}


def test_a_variable_without_a_value_is_given_on_the_command_line(mportal, portal, tmp_path):
    portal.on(JOBS, ok(job_json(), 201))
    spec = tmp_path / "job.yaml"
    spec.write_text("run: x\nenvs:\n  TOKEN:  # yours\n  LR: 1e-3\n")
    result = mportal("submit", str(spec))
    assert result.exit_code != 0
    assert "envs.TOKEN has no value: give it with `-e TOKEN=...`" in result.stderr
    assert portal.requests == []
    mportal("submit", str(spec), "-e", "TOKEN=t: 1")
    assert sent(portal)["envs"] == {"TOKEN": "t: 1", "LR": "1e-3"}


def test_documents_of_a_file_run_in_order_and_files_do_not(mportal, portal, spec, tmp_path):
    two = tmp_path / "two.yaml"
    two.write_text("name: exp\n---\nrun: echo\n---\nrun: echo\nenvs: {A: null}\n")
    portal.on("POST /projects/rl/jobs/batch", page([job_json(id=1), job_json(id=2), job_json()]))
    mportal("submit", str(two), str(spec), "-e", "A=1")
    body = json.loads(portal.seen("POST /projects/rl/jobs/batch")[0].content)
    documents = [yaml.safe_load(text) for text in body["specs"]]
    names = [(each["name"], each.get("portal", {}).get("depends_on")) for each in documents]
    assert names == [("exp-1", None), ("exp-2", ["exp-1"]), ("hello", None)]


def test_errors_of_several_are_shown_where_they_stand(mportal, portal, spec, tmp_path):
    two = tmp_path / "two.yaml"
    two.write_text("name: a\nrun: echo\n---\nname: b\nrun: echo\nportal: {depends_on: [x]}\n")
    error = {
        "path": "portal.depends_on[0]",
        "line": 4,
        "code": "unknown_job",
        "message": "Project rl has no job 'x'.",
        "document": 2,
    }
    answer = problem(422, "invalid_spec", errors=[error])
    portal.on("POST /projects/rl/jobs/batch", answer)
    result = mportal("submit", str(spec), str(two))
    assert result.exit_code != 0
    assert f"{two}:6: portal.depends_on[0]: Project rl has no job" in result.stderr
    assert "depends_on: [x]" in result.stderr


def test_errors_of_the_portal_name_the_lines_of_the_file_whatever_options_changed(
    mportal, portal, tmp_path
):
    spec = tmp_path / "job.yaml"
    spec.write_text("envs:\n  A: 1\n  B: 2\nportal:\n  priority: 5\n  max_duration: 1h\nrun: x\n")
    row = {"path": "portal.max_duration", "code": "odd", "message": "Odd.", "suggestion": None}

    def refuse(request):
        line = request.content.decode().split("\n").index("  max_duration: 1h") + 1
        return problem(422, "invalid_spec", errors=[{**row, "line": line}])

    portal.on(JOBS, refuse)
    result = mportal("submit", str(spec), "-e", "A=2", "--hold", "--name", "n")
    assert f"{spec}:6: portal.max_duration: Odd." in result.stderr
    assert "     6 |   max_duration: 1h" in result.stderr


def test_a_dry_run_takes_variables_too(mportal, portal, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("run: x\nenvs: {A: null}\n")
    assert mportal("submit", "--dry-run", str(spec), "-e", "A=1").exit_code == 0
    assert mportal("submit", "--dry-run", str(spec)).exit_code != 0


def test_following_is_for_one_job(mportal, portal, spec):
    result = mportal("submit", "--follow", str(spec), str(spec))
    assert (result.exit_code, "--follow is for one job" in result.stderr) == (2, True)
    assert portal.requests == []


def test_an_array_is_shown_as_one(mportal, portal, spec):
    portal.on(JOBS, ok(job_json(array=7), 201))
    portal.on("GET /projects/rl/arrays/7", ok(array_json()))
    reported = "Array 7 (ppo), 2 jobs, 1 at once: 2 QUEUED\nhttp://portal/rl/arrays/7\n"
    assert mportal("submit", str(spec)).stdout == reported
