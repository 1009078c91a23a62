"""REST of a project's secrets: they go in and never come out."""

from __future__ import annotations

import pytest

from jobs.models import ProjectSecret
from tests.integration.api.conftest import assert_problem

VALUE = "hunter2-hunter2"
PATH = "/projects/rl/secrets"


def put(caller, name, value=VALUE):
    return caller.send("PUT", f"{PATH}/{name}", {"value": value})


def test_a_secret_is_set_listed_changed_and_deleted(maintainer, member):
    made = put(maintainer, "HF_TOKEN").json()
    assert (made["name"], made["is_masked"]) == ("HF_TOKEN", True)
    assert put(maintainer, "HF_TOKEN", "x").json()["is_masked"] is False
    (row,) = member.get(PATH).json()["results"]
    assert set(row) == {
        "name", "created_at", "created_by", "updated_at", "updated_by", "is_masked"
    }  # fmt: skip
    assert row["updated_by"] == maintainer.user.username
    assert maintainer.delete(f"{PATH}/HF_TOKEN").status_code == 204
    assert member.get(PATH).json()["results"] == []
    assert_problem(maintainer.delete(f"{PATH}/HF_TOKEN"), 404, "not_found")


def test_no_answer_holds_a_value(maintainer):
    for response in (put(maintainer, "A"), maintainer.get(PATH), put(maintainer, "1-", VALUE)):
        assert VALUE not in response.content.decode()


def test_values_are_kept_to_the_letter(maintainer):
    put(maintainer, "A", "  two\nlines \n")
    assert ProjectSecret.objects.get().is_masked is False
    assert put(maintainer, "A", "\n").status_code == 200


@pytest.mark.parametrize("number", [5, True, 1.5])
def test_a_number_is_no_value(maintainer, number):
    assert_problem(put(maintainer, "HF_TOKEN", number), 400, "invalid_request")
    assert not ProjectSecret.objects.exists()


@pytest.mark.parametrize("name", ["1A", "A.B", "MPORTAL_X", "A" * 101])
def test_a_name_that_no_variable_can_have_is_refused(maintainer, name):
    assert_problem(put(maintainer, name), 422, "invalid_secret")


@pytest.mark.parametrize("body", [{}, {"value": None}, {"value": ["x"]}, [], {"value": {"a": 1}}])
def test_a_body_without_a_value_is_refused(maintainer, body):
    assert_problem(maintainer.send("PUT", f"{PATH}/A", body), 400, "invalid_request")


def test_an_empty_value_is_refused(maintainer):
    assert_problem(put(maintainer, "A", ""), 422, "invalid_secret")


def test_without_keys_it_is_said_whose_matter_it_is(maintainer, settings):
    settings.MPORTAL_SECRET_KEYS = []
    body = assert_problem(put(maintainer, "A"), 503, "secrets_unavailable")
    assert "MPORTAL_SECRET_KEYS" in body["detail"]


def test_a_job_names_what_the_project_has(maintainer, member):
    spec = {"run": "env", "secrets": ["A"]}
    body = assert_problem(member.post("/projects/rl/jobs", {"spec": spec}), 422, "invalid_spec")
    assert body["errors"][0]["code"] == "unknown_secret"
    put(maintainer, "A")
    made = member.post("/projects/rl/jobs", {"spec": spec}).json()
    job = member.get(f"/projects/rl/jobs/{made['id']}").json()
    assert job["spec"]["secrets"] == {"A": "A"}
