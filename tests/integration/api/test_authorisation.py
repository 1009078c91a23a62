"""Every operation of the API, called by each caller that the table of least roles distinguishes.

An operation that is not in the table fails the first test, so none can be forgotten.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import URLPattern

from jobs.api.urls import urlpatterns
from jobs.models import Cluster, Job, Membership, Project
from jobs.statuses import JobStatus, Role
from tests.factories import (
    make_array,
    make_job,
    make_member,
    make_project,
    make_schedule,
    make_template,
    make_user,
)
from tests.integration.api.conftest import Caller, caller_for
from tests.undone import undone

ROLES = ("viewer", "member", "maintainer", "admin")
METHODS = ("get", "post", "put", "patch", "delete")

PUBLIC = "public"  # without signing in
NAMED = "any caller that names a token of the portal"  # test_proof
SIGNED_IN = "signed in"  # about oneself
ATTEMPT = "attempt token"  # the runner's own door: shown where it is tested

# The least role for each operation.
LEAST: dict[tuple[str, str], str] = {
    ("get", "me"): SIGNED_IN,
    ("patch", "me"): SIGNED_IN,
    ("get", "projects"): SIGNED_IN,
    ("get", "tokens"): SIGNED_IN,
    ("post", "tokens"): SIGNED_IN,
    ("delete", "token"): SIGNED_IN,
    ("get", "users"): SIGNED_IN,  # and administrators alone: account/test_users
    ("post", "users"): SIGNED_IN,
    ("get", "user"): SIGNED_IN,
    ("patch", "user"): SIGNED_IN,
    ("post", "user_link"): SIGNED_IN,
    ("get", "user_sessions"): SIGNED_IN,
    ("delete", "user_sessions"): SIGNED_IN,
    ("delete", "user_session"): SIGNED_IN,
    ("get", "project"): "viewer",
    ("patch", "project"): "admin",
    ("delete", "project"): "admin",
    ("post", "project_archive"): "admin",
    ("post", "project_unarchive"): "admin",
    ("get", "limits"): "viewer",
    ("put", "limits"): SIGNED_IN,  # and administrators alone: projects/test_limits
    ("get", "members"): "viewer",
    ("put", "member"): "admin",
    ("delete", "member"): "admin",
    ("get", "jobs"): "viewer",
    ("post", "jobs"): "member",
    ("post", "validate"): "member",
    ("post", "batch"): "member",
    ("post", "bulk"): "member",
    ("get", "history"): "viewer",
    ("get", "compare"): SIGNED_IN,  # only jobs that the caller may see: test_runs
    ("get", "views"): "viewer",
    ("post", "views"): "member",
    ("delete", "view"): "member",  # one of the own: test_views
    ("get", "array"): "viewer",
    ("post", "array_cancel"): "maintainer",  # of another user's; the own: test_arrays
    ("post", "array_rerun_failed"): "member",
    ("get", "job"): "viewer",
    ("patch", "job"): "member",
    ("delete", "job"): "maintainer",
    ("post", "cancel"): "maintainer",  # of another user's job; the own: test_job_actions
    ("post", "hold"): "maintainer",  # likewise
    ("post", "release"): "maintainer",
    ("post", "prioritize"): "maintainer",  # likewise
    ("post", "extend"): "maintainer",  # likewise
    ("post", "cluster_extend"): "maintainer",  # likewise
    ("post", "cluster_stop"): "maintainer",  # likewise
    ("get", "overview"): "viewer",
    ("get", "overview_all"): SIGNED_IN,
    ("post", "rerun"): "member",
    ("get", "attempts"): "viewer",
    ("get", "events"): "viewer",
    ("get", "logs"): "viewer",
    ("get", "log_search"): "viewer",
    ("get", "log_stream"): "viewer",
    ("get", "log_download"): "viewer",
    ("get", "metrics"): "viewer",
    ("get", "mesh"): "viewer",
    ("get", "tasks"): "viewer",
    ("get", "program_metrics"): "viewer",
    ("get", "graph"): "viewer",
    ("get", "why"): "viewer",
    ("get", "gateway_sessions"): "viewer",
    (
        "post",
        "gateway_sessions",
    ): "maintainer",  # of another's job
    ("delete", "gateway_session"): "member",  # others': test_gateway_sessions
    ("get", "stacks"): "viewer",
    ("post", "stacks"): "maintainer",  # of another user's job; the own: test_stacks
    ("post", "all_stacks"): "maintainer",  # as above
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
    ("patch", "schedule"): "maintainer",  # of another user's; the own: test_schedules
    ("delete", "schedule"): "maintainer",  # likewise
    ("post", "schedule_pause"): "maintainer",  # likewise
    ("post", "schedule_resume"): "maintainer",  # likewise
    ("post", "schedule_run"): "maintainer",  # likewise
    ("get", "templates"): "viewer",
    ("get", "template"): "viewer",
    ("put", "template"): "maintainer",
    ("delete", "template"): "maintainer",
    ("post", "template_fill_in"): "viewer",
    ("post", "template_run"): "member",
    ("get", "shared_templates"): SIGNED_IN,
    ("get", "shared_template"): SIGNED_IN,
    ("put", "shared_template"): SIGNED_IN,  # and administrators alone: test_templates
    ("delete", "shared_template"): SIGNED_IN,
    ("post", "plan"): "member",
    ("post", "plan_batch"): "member",
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
    ("get", "timeline"): SIGNED_IN,
    ("get", "quotas"): SIGNED_IN,
    ("post", "quotas"): SIGNED_IN,
    ("delete", "quota"): SIGNED_IN,
    ("get", "shares"): SIGNED_IN,
    ("get", "project_quotas"): "viewer",
    ("put", "weight"): SIGNED_IN,
    ("post", "projects"): SIGNED_IN,
    ("get", "proof"): NAMED,
    ("get", "job_schema"): PUBLIC,
    ("get", "openapi"): PUBLIC,
    ("get", "docs"): PUBLIC,
    ("post", "frames"): ATTEMPT,
    ("put", "code"): ATTEMPT,
}
# Views that are plain functions, and take something else than GET.
FUNCTIONS = {"frames": ["post"], "code": ["put"]}
# What operations read before they know whether the caller may; others are sent no field.
_SPEC = {"spec": {"run": "true"}}
BODIES = {
    ("post", "jobs"): _SPEC,
    ("post", "validate"): _SPEC,
    ("post", "plan"): _SPEC,
    ("post", "plan_batch"): {"specs": [{"run": "true"}]},
    ("post", "bulk"): {"action": "cancel", "jobs": [1]},
    ("put", "secret"): {"value": "x"},
}
# Parameters that operations cannot do without.
QUERIES = {("get", "history"): {"name": "hello"}}
# What they request is made up.
NOT_THERE = {
    ("delete", "view"),
    ("delete", "gateway_session"),
    ("get", "upload"),
    ("delete", "secret"),
}
# These read in threads of their own, which see only what is committed.
ARRAY_ID = 4711
THREADED = {"log_stream", "log_download"}
UNKNOWN, REFUSED, MISSING, WRONG_METHOD, SERVER_ERROR = 401, 403, 404, 405, 500

# Callers who have no role in the project.
ROOT = "administrator of the installation"
NOBODY = "nobody"
READER = "read-only token of an admin"
OUTSIDER = "admin of another project"
ELSEWHERE = "token of an admin, bound to another project"
THROUGH_ANOTHER = "admin of both projects, through the other one"


def route_of(name: str) -> str:
    return next(str(p.pattern) for p in urlpatterns if getattr(p, "name", None) == name)


def operations() -> set[tuple[str, str]]:
    """Return the method and name of everything the URL conf leads to."""
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
def job(project: Project) -> Job:
    Cluster.objects.create(project=project, name="mpx", backend_name="local", num_nodes=1)
    make_member(project, Role.VIEWER, username="vic")
    make_schedule(project, "nightly")
    make_template(project, "grid")
    make_array(project, pk=ARRAY_ID)
    return make_job(project, status=JobStatus.SUCCEEDED)


@pytest.fixture
def callers(project: Project) -> dict[str, Caller]:
    """Create every caller that the table distinguishes, each with a token."""
    other = make_project("other")
    admin, both = make_member(project, Role.ADMIN), make_member(project, Role.ADMIN)
    Membership.objects.create(project=other, user=both, role=Role.ADMIN)
    return {
        **{role: caller_for(make_member(project, Role(role))) for role in ROLES},
        READER: caller_for(admin, read_only=True),
        ROOT: caller_for(make_user(is_superuser=True)),
        OUTSIDER: caller_for(make_member(other, Role.ADMIN)),
        ELSEWHERE: caller_for(admin, project=other),
        THROUGH_ANOTHER: caller_for(both),
        NOBODY: caller_for(None),
    }


def call(caller: Caller, operation: tuple[str, str], slug: str, job_id: int) -> int:
    """Return the status with which the operation is answered."""
    method, name = operation
    parts: dict[str, Any] = {
        "slug": slug,
        "job_id": job_id,
        "array_id": ARRAY_ID,
        "digest": "a" * 64,
        "token_id": 1,
        "quota_id": 1,
        "session_id": 1,
        "view_id": 1,
        "name": "A",
        "username": "vic",
        "kind": "aws",
        "cluster_name": "mpx",
        "schedule_name": "nightly",
        "template_name": "grid",
    }
    path = re.sub(r"<\w+:(\w+)>", lambda found: str(parts[found[1]]), route_of(name))
    query, body = QUERIES.get(operation), BODIES.get(operation, {})
    response = caller.send(method.upper(), f"/{path}", body, query_params=query)
    if response.streaming:
        response.close()
    return int(response.status_code)


def is_allowed(who: str, least: str) -> bool:
    """Whether the table lets a caller of the project do it."""
    if who in ROLES:
        return ROLES.index(who) >= ROLES.index(least)
    return who == ROOT or (who == READER and least == "viewer")


def is_right(who: str, operation: tuple[str, str], status: int) -> bool:
    """Whether the table means the caller to be answered with this status."""
    if who == NOBODY:
        return status == UNKNOWN
    if who in {OUTSIDER, ELSEWHERE, THROUGH_ANOTHER}:
        return status == MISSING
    if not is_allowed(who, LEAST[operation]):
        return status == REFUSED
    if status == MISSING:
        return operation in NOT_THERE
    return status not in {UNKNOWN, REFUSED} and status < SERVER_ERROR


def in_project() -> list[Any]:
    """List the operations that take a role, as parameters of a test."""
    committed = pytest.mark.django_db(transaction=True)
    return [
        pytest.param(each, marks=committed if each[1] in THREADED else (), id="-".join(each))
        for each in sorted(LEAST)
        if LEAST[each] in ROLES
    ]


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("operation", in_project())
def test_everyone_is_answered_as_the_table_says(job, callers, operation):
    wrong = {}
    for who, caller in callers.items():
        slug = "other" if who == THROUGH_ANOTHER else "rl"
        if slug == "other" and "job_id" not in route_of(operation[1]):
            continue  # what there is in the other project may be seen there
        with undone():
            status = call(caller, operation, slug, job.pk)
        if not is_right(who, operation, status):
            wrong[who] = status
    assert not wrong, f"{operation}: {wrong}"


@pytest.mark.feature("P8.1")
def test_in_another_project_no_role_sees_anything(job):
    other = make_project("other")
    callers = {role: caller_for(make_member(other, Role(role))) for role in ROLES}
    seen = {}
    for operation in sorted(LEAST):
        if LEAST[operation] not in ROLES or operation[1] in THREADED:
            continue
        for role, caller in callers.items():
            with undone():
                status = call(caller, operation, "rl", job.pk)
            if status != MISSING:
                seen[role, operation] = status
    assert not seen, str(seen)


@pytest.mark.feature("P8.1")
@pytest.mark.django_db
def test_without_signing_in_only_the_public_is_there(anonymous):
    wrong = {}
    for operation in sorted(LEAST):
        if LEAST[operation] in {PUBLIC, SIGNED_IN}:
            status = call(anonymous, operation, "rl", 1)
            if status != (200 if LEAST[operation] == PUBLIC else UNKNOWN):
                wrong[operation] = status
    assert not wrong, str(wrong)


def test_methods_that_nothing_has_are_refused(member):
    for method in ("put", "patch"):
        for name in ("jobs", "tokens"):
            assert call(member, (method, name), "rl", 1) == WRONG_METHOD, (method, name)
    assert call(member, ("put", "me"), "rl", 1) == WRONG_METHOD
