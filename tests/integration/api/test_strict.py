"""Undeclared parameters of an operation are refused, with the name that was probably meant.

The operations come from the description, and `test_schema` holds that it has every address.
"""

from __future__ import annotations

from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from jobs.attempt_tokens import attempt_token
from jobs.statuses import JobStatus
from tests.each_case import check_each
from tests.factories import make_array, make_attempt, make_job, make_schedule
from tests.integration.api.conftest import Caller, assert_problem
from tests.undone import undone

pytestmark = pytest.mark.django_db

# Their bodies are no JSON, or JSON with the fields of a cloud.
NO_FIELDS = {"upload_create", "frames_push", "code_store", "cloud_add"}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    described = [
        (path.removeprefix("/api/v1"), method.upper(), operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    return [*described, ("/openapi", "GET", {"operationId": "openapi"})]


@pytest.fixture
def addresses(project, root) -> dict[str, Any]:
    """Create the objects that path parameters name, so that each operation finds its own."""
    job = make_job(project, status=JobStatus.RUNNING)
    attempt = make_attempt(job)
    make_schedule(project, "nightly")
    return {
        "slug": project.slug,
        "job_id": job.pk,
        "array_id": make_array(project).pk,
        "attempt_id": attempt.pk,
        "schedule_name": "nightly",
        "cluster_name": attempt.cluster,
        "username": root.user.username,
        "token_id": 1,
        "quota_id": 1,
        "session_id": 1,
        "view_id": 1,
        "template_name": "hello-mesh",
        "digest": "a" * 64,
        "name": "some",
        "kind": "aws",
        "runner": {"Authorization": f"Bearer {attempt_token(job.pk, attempt.number)}"},
    }


def errors_of(answer: Any) -> dict[str, str]:
    problem = assert_problem(answer, 400, "invalid_request")
    return {row["path"]: row["message"] for row in problem["errors"]}


def test_every_operation_refuses_a_parameter_that_it_does_not_have(root, addresses):
    def refuses(path: str, method: str, _operation: dict[str, Any]) -> None:
        headers = addresses["runner"] if path.startswith("/attempts/") else {}
        caller = Caller(root.user, {**root.headers, **headers}, root.http)
        with undone():
            answer = caller.send(method, f"{path.format(**addresses)}?no_such=")
        assert errors_of(answer).keys() == {"no_such"}

    check_each(operations(), refuses)


def test_every_operation_refuses_a_field_that_it_does_not_have(root, addresses):
    def refuses(path: str, method: str, _operation: dict[str, Any]) -> None:
        with undone():
            answer = root.send(method, path.format(**addresses), {"no_such": 1})
        assert errors_of(answer).keys() == {"no_such"}

    writing = [
        each
        for each in operations()
        if each[1] != "GET" and each[2]["operationId"] not in NO_FIELDS
    ]
    check_each(writing, refuses)


def test_a_wrong_choice_is_answered_with_the_valid_ones(root, addresses):
    choices = [
        (path, parameter["name"], [word for word in parameter["schema"]["enum"] if word])
        for path, method, operation in operations()
        for parameter in operation.get("parameters", [])
        if method == "GET" and parameter["in"] == "query" and "enum" in parameter["schema"]
    ]

    def lists(path: str, name: str, words: list[str]) -> None:
        message = errors_of(root.get(path.format(**addresses), {name: "nope"}))[name]
        assert all(word in message for word in words), message

    assert len(choices) > 5
    check_each(choices, lists)


def test_a_misspelled_parameter_is_answered_with_the_nearest_one(viewer):
    answer = viewer.get("/projects/rl/jobs", {"staus": "RUNNING"})
    assert errors_of(answer) == {"staus": "Unknown parameter; did you mean status?"}


def test_a_name_that_resembles_none_is_answered_with_those_there_are(viewer):
    answer = viewer.get("/projects/rl/usage", {"xyz": "1"})
    (message,) = errors_of(answer).values()
    assert message.startswith("Unknown parameter; choose from ")


def test_a_misspelled_field_is_found_at_any_depth(root):
    quota = {"place": "pool:h100", "caps": {"gpu": 3}, "noiminal": {}}
    answer = root.post("/quotas", quota)
    assert errors_of(answer)["noiminal"] == "Unknown field; did you mean nominal?"


def test_a_body_where_none_is_taken_is_refused(maintainer, addresses):
    path = f"/projects/rl/jobs/{addresses['job_id']}/actions/cancel"
    for body, kind in (([1], "application/json"), ("a=1", "application/x-www-form-urlencoded")):
        answer = maintainer.post(path, body, content_type=kind)
        assert errors_of(answer) == {"": "This operation takes no body."}
    assert maintainer.post(path, {}).status_code == 202


def test_of_many_unknown_fields_a_few_are_reported(maintainer):
    answer = maintainer.post("/tokens", {f"field-{n}": n for n in range(10_000)})
    assert len(errors_of(answer)) == 20
