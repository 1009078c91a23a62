"""POST /projects/{slug}/jobs: every way to send a job, and every way to get it wrong."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from jobs.models import Job
from jobs.statuses import Role
from tests.factories import make_member, make_project
from tests.integration.api.conftest import YAML, assert_problem, caller_for

PATH = "/projects/rl/jobs"


def submit(caller, body=YAML, kind="application/yaml", **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return caller.post(PATH, body, content_type=kind, headers=headers)


@pytest.mark.feature("P7.2")
@pytest.mark.parametrize("kind", ["application/yaml", "application/x-yaml", "text/yaml"])
def test_yaml_becomes_a_queued_job(member, kind, no_broker):
    response = submit(member, kind=f"{kind}; charset=utf-8")
    job = response.json()
    assert response.status_code == 201
    assert response["Location"] == f"/api/v1/projects/rl/jobs/{job['id']}"
    assert job["url"] == f"http://testserver/rl/jobs/{job['id']}"
    assert (job["status"], job["name"], job["submitted_by"]) == (
        "QUEUED", "hello", member.user.username,
    )  # fmt: skip
    assert Job.objects.get(pk=job["id"]).spec_source == YAML


@pytest.mark.parametrize("spec", [YAML, {"name": "hello", "run": "echo hello"}])
def test_json_carries_text_or_an_object(member, spec):
    response = submit(member, {"spec": spec}, "application/json")
    assert response.json()["name"] == "hello"


@pytest.mark.django_db(transaction=True)
def test_the_background_hears_of_it_after_the_commit(no_broker):
    caller = caller_for(make_member(make_project("rl"), Role.MEMBER))
    submit(caller)
    assert ("queue", None) in [(*call, None)[:2] for call in no_broker]


@pytest.mark.feature("P7.2")
def test_every_error_of_a_specification_comes_at_once(member):
    body = assert_problem(submit(member, "nam: x\nnum_nodes: none\n"), 422, "invalid_spec")
    keys = {"path", "line", "column", "end_column", "code", "message", "suggestion"}
    assert keys == set(body["errors"][0])
    by_path = {error["path"]: error for error in body["errors"]}
    assert by_path["nam"]["suggestion"] == "name"
    assert by_path["num_nodes"]["line"] == 2
    assert Job.objects.count() == 0


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize("workdir", [".", "/etc", "../secrets", "~/x", "file:///etc"])
def test_no_path_of_the_portals_host_can_be_named(member, workdir):
    response = submit(member, {"spec": {"run": "true", "workdir": workdir}}, "application/json")
    body = assert_problem(response, 422, "invalid_spec")
    assert "workdir" in {error["path"] for error in body["errors"]}


def test_an_upload_the_project_does_not_have_is_refused(member):
    spec = {"run": "true", "workdir": f"upload:{'a' * 64}"}
    body = assert_problem(submit(member, {"spec": spec}, "application/json"), 422, "invalid_spec")
    assert body["errors"][0]["code"] == "unknown_upload"


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        ("{", "application/json", 400, "parse_error"),
        ("[" * 100_000, "application/json", 400, "parse_error"),
        ("{}", "application/json", 400, "invalid_request"),
        ('{"spec": 7}', "application/json", 400, "invalid_request"),
        ('["spec"]', "application/json", 400, "invalid_request"),
        ("null", "application/json", 400, "invalid_request"),
        (b"\xff", "application/yaml", 400, "parse_error"),
        (b"\xff", "application/json", 400, "parse_error"),
        ("x" * 1_100_000, "application/yaml", 413, "body_too_large"),
        ("x" * 300_000, "application/yaml", 422, "invalid_spec"),
        ("", "application/yaml", 400, "invalid_request"),
        ("\0", "application/yaml", 422, "invalid_spec"),
        ('{"spec": {"run": "\\u0000"}}', "application/json", 422, "invalid_spec"),
        ('{"spec": {"run": "\\ud800"}}', "application/json", 422, "invalid_spec"),
        (YAML, "application/xml", 415, "unsupported_media_type"),
        ("name=x", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    ],
)
def test_a_body_that_cannot_be_used_is_a_problem(member, body, kind, status, code):
    assert_problem(submit(member, body, kind), status, code)
    assert Job.objects.count() == 0


@pytest.mark.feature("P7.2")
def test_the_same_key_and_body_give_the_same_job(member):
    first = submit(member, Idempotency_Key="k1")
    again = submit(member, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert first["Location"] == again["Location"]
    assert Job.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(member):
    submit(member, Idempotency_Key="k1")
    response = submit(member, YAML + "num_nodes: 2\n", Idempotency_Key="k1")
    assert_problem(response, 422, "idempotency_conflict")


def test_keys_of_two_users_are_two_keys(member, maintainer):
    one = submit(member, Idempotency_Key="k1").json()["id"]
    assert submit(maintainer, Idempotency_Key="k1").json()["id"] != one


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused(member, key):
    body = assert_problem(submit(member, Idempotency_Key=key), 400, "invalid_request")
    assert body["errors"][0]["path"] == "Idempotency-Key"


@pytest.mark.feature("P7.2")
@pytest.mark.django_db(transaction=True)
def test_racing_requests_with_one_key_make_one_job():
    caller = caller_for(make_member(make_project("rl"), Role.MEMBER))
    racers = 4
    line = threading.Barrier(racers)

    def race(_):
        line.wait(timeout=10)
        try:
            return submit(caller, Idempotency_Key="same")
        finally:
            connection.close()

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(race, range(racers)))
    assert [answer.status_code for answer in answers] == [201] * racers
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Job.objects.count() == 1


def test_the_body_is_read_as_json_whatever_its_text_says(member):
    body = json.dumps({"spec": "run: |\n  echo 'ä'\n"})
    assert submit(member, body, "application/json").status_code == 201
