"""mportal template: its requests to the portal, and its output for the answers."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.rest.fake_portal import MOMENT, job_json, ok, page, problem

ROW = {
    "name": "train",
    "scope": "project",
    "title": "Train a model",
    "about": "Trains it.",
    "version": 2,
    "saved_by": "ada",
    "saved_at": MOMENT,
    "can_manage": True,
}
BUILT_IN = {**ROW, "name": "sweep", "scope": "built-in", "saved_by": "", "saved_at": None}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "nodes": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2, "title": "Nodes"},
        "data": {"type": "string", "description": "Where the data is."},
    },
    "required": ["data"],
}
SOURCE = "name: train\n---\nrun: echo hello\n"
DETAIL = {**ROW, "source": SOURCE, "parameters": PARAMETERS, "versions": []}
PATH = "/projects/rl/templates"


def test_templates_are_listed_and_shown_with_their_parameters(mportal, portal):
    portal.on(f"GET {PATH}", page([ROW, BUILT_IN]))
    out = mportal("template", "list").stdout
    assert "built-in" in out and "by ada" in out
    portal.on(f"GET {PATH}/train", ok(DETAIL))
    out = mportal("template", "show", "train").stdout
    assert "integer 1..8" in out and "(required)" in out and "Where the data is." in out
    assert mportal("template", "show", "train", "--source").stdout == SOURCE


def test_only_parameters_that_need_a_value_are_shown_as_required(mportal, portal):
    notes = {"note": {"type": "string", "default": ""}, "old": {"type": "string"}}
    properties = {**PARAMETERS["properties"], **notes}
    answer = {**DETAIL, "parameters": {**PARAMETERS, "properties": properties}}
    portal.on(f"GET {PATH}/train", ok(answer))
    lines = mportal("template", "show", "train").stdout.splitlines()
    assert [line.split()[0] for line in lines if "(required)" in line] == ["data"]
    assert [line.split()[0] for line in lines if "(empty)" in line] == ["note", "old"]


def test_a_filled_template_is_submitted_with_the_options_of_submit(mportal, portal, tmp_path):
    values = tmp_path / "data.txt"
    values.write_text("s3://bucket")
    portal.on(f"POST {PATH}/train/actions/fill-in", ok({"spec": "name: a\nrun: echo hello\n"}))
    portal.on("POST /projects/rl/jobs", ok(job_json(id=7), 201))
    run = ("template", "run", "train", "-P", "nodes=4", "-P", f"data=@{values}", "-V", "2")
    result = mportal(*run, "--name", "b")
    assert (result.exit_code, "Job 7" in result.stdout) == (0, True), result.stderr
    asked, sent = (each.content.decode() for each in portal.requests)
    assert json.loads(asked) == {"values": {"nodes": "4", "data": "s3://bucket"}, "version": 2}
    assert sent.startswith('name: "b"')
    assert mportal(*run, "--print").stdout == "name: a\nrun: echo hello\n"
    assert len(portal.requests) == 3


def test_a_template_is_saved_under_the_name_in_its_header(mportal, portal, tmp_path):
    file = tmp_path / "train.yaml"
    file.write_text(SOURCE)
    portal.on(f"PUT {PATH}/train", ok(DETAIL))
    assert mportal("template", "save", str(file)).stdout == "train: version 2\n"
    portal.on("PUT /templates/train", ok(DETAIL))
    assert mportal("template", "save", str(file), "--all-projects").exit_code == 0
    file.write_text("name: train\nrun: x\n")
    result = mportal("template", "save", str(file))
    assert (result.exit_code, "two parts" in result.stderr) == (2, True)


def test_values_that_do_not_fit_are_reported(mportal, portal):
    error = {"path": "values.nodes", "line": None, "code": "bad_value", "message": "Too many."}
    portal.on(f"POST {PATH}/train/actions/fill-in", problem(422, "invalid_spec", errors=[error]))
    result = mportal("template", "run", "train", "-P", "nodes=99")
    assert (result.exit_code, "Too many." in result.stderr) == (2, True)
