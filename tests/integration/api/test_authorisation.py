"""Every address and method times every role, in one's own project and another: generated.

An operation that is not in the table fails the first test, so none can be forgotten.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import URLPattern

from jobs.api.urls import urlpatterns
from jobs.models import Cluster, Membership
from jobs.statuses import JobStatus, Role
from tests.factories import (
    make_array,
    make_job,
    make_member,
    make_project,
    make_schedule,
    make_user,
)
from tests.integration.api.conftest import Caller, caller_for

ROLES = ("viewer", "member", "maintainer", "admin")
METHODS = ("get", "post", "put", "patch", "delete")

PUBLIC = "public"  # without signing in
SIGNED_IN = "signed in"  # about oneself
ATTEMPT = "attempt token"  # the runner's own door: shown where it is tested

# The least role for each operation.
LEAST: dict[tuple[str, str], str] = {
    ("get", "me"): SIGNED_IN,
    ("get", "projects"): SIGNED_IN,
    ("get", "tokens"): SIGNED_IN,
    ("post", "tokens"): SIGNED_IN,
    ("delete", "token"): SIGNED_IN,
    ("get", "project"): "viewer",
    ("get", "jobs"): "viewer",
    ("post", "jobs"): "member",
    ("post", "validate"): "member",
    ("post", "batch"): "member",
    ("get", "array"): "viewer",
    ("post", "array_cancel"): "maintainer",  # of another's; one's own: test_arrays
    ("post", "array_rerun_failed"): "member",
    ("get", "job"): "viewer",
    ("delete", "job"): "maintainer",
    ("post", "cancel"): "maintainer",  # of another's job; one's own: test_job_actions
    ("post", "hold"): "maintainer",  # likewise
    ("post", "release"): "maintainer",
    ("post", "prioritize"): "maintainer",  # likewise
    ("post", "extend"): "maintainer",  # likewise
    ("post", "cluster_extend"): "maintainer",  # likewise
    ("post", "rerun"): "member",
    ("get", "attempts"): "viewer",
    ("get", "events"): "viewer",
    ("get", "logs"): "viewer",
    ("get", "log_search"): "viewer",
    ("get", "log_stream"): "viewer",
    ("get", "log_download"): "viewer",
    ("get", "metrics"): "viewer",
    ("get", "mesh"): "viewer",
    ("get", "why"): "viewer",
    ("get", "stacks"): "viewer",
    ("post", "stacks"): "maintainer",  # of another's job; one's own: test_stacks
    ("post", "uploads"): "member",
    ("get", "upload"): "viewer",
    ("get", "secrets"): "member",
    ("put", "secret"): "maintainer",
    ("delete", "secret"): "maintainer",
    ("get", "budget"): "viewer",
    ("put", "budget"): SIGNED_IN,  # and the installation's administrators alone: test_budget
    ("get", "usage"): "viewer",
    ("get", "schedules"): "viewer",
    ("post", "schedules"): "member",
    ("get", "schedule"): "viewer",
    ("patch", "schedule"): "maintainer",  # of another's; one's own: test_schedules
    ("delete", "schedule"): "maintainer",  # likewise
    ("post", "schedule_pause"): "maintainer",  # likewise
    ("post", "schedule_resume"): "maintainer",  # likewise
    ("post", "schedule_run"): "maintainer",  # likewise
    ("post", "plan"): "member",
    ("get", "clusters"): "viewer",
    ("post", "cluster_down"): "maintainer",
    ("get", "all_clusters"): SIGNED_IN,
    ("post", "any_cluster_down"): SIGNED_IN,
    ("get", "infra"): SIGNED_IN,
    ("get", "clouds"): SIGNED_IN,  # and administrators alone: test_clouds
    ("post", "cloud_check"): SIGNED_IN,
    ("put", "cloud"): SIGNED_IN,
    ("delete", "cloud_entry"): SIGNED_IN,
    ("get", "pools"): SIGNED_IN,
    ("put", "pool"): SIGNED_IN,  # and administrators alone, as all below that set: test_queues
    ("delete", "pool"): SIGNED_IN,
    ("get", "queues"): SIGNED_IN,
    ("put", "queue"): SIGNED_IN,
    ("delete", "queue"): SIGNED_IN,
    ("get", "waiting"): SIGNED_IN,
    ("get", "quotas"): SIGNED_IN,
    ("post", "quotas"): SIGNED_IN,
    ("delete", "quota"): SIGNED_IN,
    ("get", "shares"): SIGNED_IN,
    ("get", "project_quotas"): "viewer",
    ("put", "weight"): SIGNED_IN,
    ("post", "projects"): SIGNED_IN,
    ("get", "job_schema"): PUBLIC,
    ("get", "openapi"): PUBLIC,
    ("get", "docs"): PUBLIC,
    ("post", "frames"): ATTEMPT,
}
# Views that are plain functions, and take something else than GET.
FUNCTIONS = {"frames": ["post"]}
# What they ask for is made up.
NOT_THERE = {("get", "upload"), ("delete", "secret")}
# These read in threads of their own, which see only what is committed.
ARRAY_ID = 4711
THREADED = {"log_stream", "log_download"}
UNKNOWN = 401
REFUSED = 403
MISSING = 404


def params(which: set[tuple[str, str]]) -> list[Any]:
    """The operations as parameters of a test."""
    committed = pytest.mark.django_db(transaction=True)
    return [
        pytest.param(each, marks=committed if each[1] in THREADED else (), id="-".join(each))
        for each in sorted(which)
    ]


def route_of(name: str) -> str:
    return next(str(p.pattern) for p in urlpatterns if getattr(p, "name", None) == name)


IN_PROJECT = params({what for what, least in LEAST.items() if least in ROLES})
OF_A_JOB = params({what for what in LEAST if "job_id" in route_of(what[1])})


def operations() -> set[tuple[str, str]]:
    """Method and name of everything the URL conf leads to."""
    found = set()
    for pattern in urlpatterns:
        if not isinstance(pattern, URLPattern) or pattern.name is None:
            continue
        view = getattr(pattern.callback, "view_class", None)
        methods = (
            [m for m in METHODS if hasattr(view, m)]
            if view
            else FUNCTIONS.get(pattern.name, ["get"])
        )
        found |= {(method, pattern.name) for method in methods}
    return found


def test_every_operation_has_its_line_in_the_table():
    assert operations() == set(LEAST)


@pytest.fixture
def job(project):
    Cluster.objects.create(project=project, name="mpx", backend_name="local", num_nodes=1)
    make_schedule(project, "nightly")
    make_array(project, pk=ARRAY_ID)
    return make_job(project, status=JobStatus.SUCCEEDED)


def call(caller: Caller, operation: tuple[str, str], slug: str, job_id: int) -> int:
    """The status with which the operation is answered."""
    method, name = operation
    parts: dict[str, Any] = {
        "slug": slug,
        "job_id": job_id,
        "array_id": ARRAY_ID,
        "digest": "a" * 64,
        "token_id": 1,
        "quota_id": 1,
        "name": "A",
        "kind": "aws",
        "cluster_name": "mpx",
        "schedule_name": "nightly",
    }
    path = re.sub(r"<\w+:(\w+)>", lambda found: str(parts[found[1]]), route_of(name))
    response = caller.send(method.upper(), f"/{path}", {"spec": {"run": "true"}, "value": "x"})
    if response.streaming:
        response.close()
    return int(response.status_code)


def allowed(role: str, least: str) -> bool:
    return ROLES.index(role) >= ROLES.index(least)


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("operation", IN_PROJECT)
def test_a_role_does_in_its_project_what_the_table_says(job, project, role, operation):
    caller = caller_for(make_member(project, Role(role)))
    status = call(caller, operation, "rl", job.pk)
    assert status != UNKNOWN
    assert (status != REFUSED) == allowed(role, LEAST[operation]), status
    if status == MISSING:
        assert operation in NOT_THERE


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("operation", IN_PROJECT)
def test_in_another_project_no_role_sees_anything(job, role, operation):
    caller = caller_for(make_member(make_project("other"), Role(role)))
    assert call(caller, operation, "rl", job.pk) == MISSING


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("operation", OF_A_JOB)
def test_a_job_is_not_reached_through_another_project(job, project, operation):
    user = make_member(project, Role.ADMIN)
    other = make_project("other")
    Membership.objects.create(project=other, user=user, role=Role.ADMIN)
    assert call(caller_for(user), operation, "other", job.pk) == MISSING


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("operation", IN_PROJECT)
def test_a_read_only_token_reads(job, project, operation):
    caller = caller_for(make_member(project, Role.ADMIN), read_only=True)
    status = call(caller, operation, "rl", job.pk)
    assert status != UNKNOWN
    assert (status == REFUSED) == (LEAST[operation] != "viewer")


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("operation", IN_PROJECT)
def test_a_token_of_another_project_reaches_nothing_here(job, project, operation):
    user = make_member(project, Role.ADMIN)
    caller = caller_for(user, project=make_project("other"))
    assert call(caller, operation, "rl", job.pk) == MISSING


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("operation", IN_PROJECT)
def test_an_administrator_of_the_installation_reaches_everything(job, operation):
    caller = caller_for(make_user(is_superuser=True))
    status = call(caller, operation, "rl", job.pk)
    assert status not in {UNKNOWN, REFUSED}
    assert status != MISSING or operation in NOT_THERE


@pytest.mark.feature("P8.1")
@pytest.mark.django_db
@pytest.mark.parametrize("operation", params(set(LEAST) - {("post", "frames")}))
def test_without_signing_in_only_the_public_is_there(anonymous, operation):
    status = call(anonymous, operation, "rl", 1)
    assert status == (200 if LEAST[operation] == PUBLIC else 401)


@pytest.mark.parametrize("method", ["put", "patch"])
def test_methods_that_nothing_has_are_refused(member, method):
    for name in ("jobs", "tokens", "me"):
        assert call(member, (method, name), "rl", 1) == 405
