"""Every page and button, requested by each caller that the table of least roles distinguishes.

What the URL conf leads to and this table does not name fails the first test; the API has a table
of its own, in `tests/integration/api/test_authorisation.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from jobs.api.urls import app_name as api
from jobs.models import (
    ApiToken,
    Cluster,
    GatewaySession,
    Job,
    Membership,
    Project,
    ProjectSecret,
    Schedule,
    User,
)
from jobs.statuses import JobStatus, Role
from tests.factories import (
    TEMPLATE,
    make_array,
    make_attempt,
    make_job,
    make_member,
    make_project,
    make_schedule,
    make_template,
    make_token,
    make_user,
)
from tests.integration.web.conftest import SOURCE, browser_of
from tests.integration.web.least_roles import ADMINISTRATOR, LEAST, PUBLIC, ROLES, SIGNED_IN
from tests.undone import undone

ARRAY_ID, SESSION_ID = 4711, 4712
# These read in threads of their own, which see only what is committed.
STREAMS = {
    "jobs_stream",
    "queue_stream",
    "overview_stream",
    "overview_all_stream",
    "machines_stream",
    "all_machines_stream",
}
THREADED = {*STREAMS, "readyz"}
CHANGED = (User, Project, Job, Membership, ApiToken, ProjectSecret, Schedule)
NO_CONTENT, REFUSED, MISSING, WRONG_METHOD = 204, 403, 404, 405
TO_SIGN_IN = "sent to sign in"

# Callers who are refused, whatever a role in the project would let them do.
OUTSIDER = "admin of another project"
LEFT = "admin who has left"
THROUGH_ANOTHER = "admin of both projects, through the other one"
BARRED = "admin who is barred"
TOKEN = "token of an admin"
VISITOR = "visitor"


def routes(patterns: Any = None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Name and address of everything outside the API that the URL conf leads to."""
    for each in patterns if patterns is not None else get_resolver().url_patterns:
        if isinstance(each, URLResolver):
            if each.app_name != api:
                yield from routes(each.url_patterns, prefix + str(each.pattern))
        elif isinstance(each, URLPattern):
            yield str(each.name), prefix + str(each.pattern)


ROUTES = dict(routes())


@pytest.fixture
def job(project: Project) -> Job:
    ProjectSecret.objects.create(project=project, name="A", ciphertext=b"")
    Cluster.objects.create(project=project, name="mpx", backend_name="local", num_nodes=1)
    make_schedule(project, "nightly")
    make_template(project, "grid")
    make_array(project, pk=ARRAY_ID)
    job = make_job(project, status=JobStatus.SUCCEEDED)
    attempt = make_attempt(job, ended_at=timezone.now())
    GatewaySession.objects.create(pk=SESSION_ID, attempt=attempt, user=job.submitted_by)
    return job


@pytest.fixture
def other_user(project: Project) -> Any:
    return make_member(project, Role.VIEWER, username="vic")


@pytest.fixture
def browsers(project: Project) -> dict[str, Client]:
    """Create each user that the table distinguishes, each with a browser."""
    other = make_project("other")
    admin, left, barred, both = (make_member(project, Role.ADMIN) for _ in range(4))
    Membership.objects.create(project=other, user=both, role=Role.ADMIN)
    users = {role: make_member(project, Role(role)) for role in ROLES}
    users |= {OUTSIDER: make_member(other, Role.ADMIN), LEFT: left}
    users |= {THROUGH_ANOTHER: both, BARRED: barred}
    found: dict[str, Client] = {who: browser_of(user) for who, user in users.items()}
    Membership.objects.filter(user=left).delete()
    User.objects.filter(pk=barred.pk).update(is_active=False)
    found[TOKEN] = Client(headers={"Authorization": f"Bearer {make_token(admin)[1]}"})
    found[VISITOR] = Client()
    for each in found.values():
        each.raise_request_exception = False
    return found


def form(name: str) -> dict[str, str]:
    """Return what the page's own form would send."""
    member = {"username": "vic", "role": "member"}
    schedule = {"cron": "@daily", "zone": "UTC", "overlap": "skip", "catch_up": "latest",
                "source": SOURCE}  # fmt: skip
    return {
        "submit": {"source": SOURCE},
        "schedule": schedule,
        "new_schedule": {**schedule, "name": "other"},
        "plan": {"source": SOURCE},
        "prioritize": {"priority": "60"},
        "save_view": {"name": "mine", "query": "status=FAILED"},
        "delete_view": {"view": "1"},
        "bulk": {"action": "cancel", "job": "1"},
        "extend": {"duration": "1h"},
        "cluster_down": {"name": "mpx"},
        "cluster_extend": {"name": "mpx"},
        "cluster_stop": {"name": "mpx"},
        "any_cluster_down": {"name": "mpx"},
        "policies": {"max_duration": "2h"},
        "budget": {"usd": "5", "on_spent": "hold", "warn_at": "50"},
        "members": member,
        "secrets": {"name": "A", "value": "x"},
        "delete_secret": {"name": "A"},
        "change_role": member,
        "remove_member": member,
        "settings": {"slug": "rl-two", "name": "RL"},
        "delete_project": {"confirm": "rl"},
        "users": {"username": "nora", "role": "member", "hours": "48"},
        "user": {"hours": "48"},
        "admin_projects": {"slug": "arms"},
        "set_weight": {"weight": "2"},
        "admin_queues": {"name": "day", "rank": "1"},
        "admin_queue": {"rank": "1"},
        "admin_quotas": {"project": "rl", "caps": "jobs=2"},
        "admin_quota": {"caps": "jobs=2"},
        "change_user": {"change": "grant"},
        "edit_template": {"source": TEMPLATE},
        "tokens": {"name": "laptop", "days": "30"},
    }.get(name, {})


def path_of(name: str, slug: str = "rl", job_id: int = 1) -> str:
    parts = {"slug": slug, "job_id": job_id, "token_id": 1, "secret": "made-up", "tab": "spec",
             "schedule_name": "nightly", "template_name": "grid", "session_id": SESSION_ID,
             "username": "vic", "name": "night", "quota_id": 1, "kind": "aws"}  # fmt: skip
    parts |= {"array_id": ARRAY_ID, "index": 0}
    return "/" + re.sub(r"<\w+:(\w+)>", lambda found: str(parts[found[1]]), ROUTES[name])


def rows() -> list[list[dict[str, Any]]]:
    """Return the rows that a request could change."""
    return [list(kind.objects.order_by("pk").values()) for kind in CHANGED]


def ask(browser: Client, method: str, name: str, **place: Any) -> Any:
    """Return the answer to the operation, a stream's closed."""
    path = path_of(name, **place)
    response = browser.generic(method.upper(), path) if method not in {"get", "post"} else None
    if response is None:
        response = browser.get(path) if method == "get" else browser.post(path, form(name))
    if response.streaming:
        response.close()
    return response


def answer_of(browser: Client, method: str, name: str, **place: Any) -> int | str:
    """Return the answer's status; TO_SIGN_IN or the address where it leads to signing in."""
    answer = ask(browser, method, name, **place)
    location = answer.get("Location", "")
    if location == f"/sign-in?next={path_of(name, **place)}":
        return TO_SIGN_IN
    # A stream's page learns from the parts that it requests next that it has to sign in.
    if name in STREAMS and answer.status_code == NO_CONTENT:
        return TO_SIGN_IN
    return location if "/sign-in" in location else int(answer.status_code)


def expected(who: str, least: str) -> set[int | str]:
    """Return the statuses that the table allows this caller for an operation of the least role."""
    if who in {VISITOR, TOKEN, BARRED}:
        return {TO_SIGN_IN}
    if who in ROLES:
        return {200, 302} if ROLES.index(who) >= ROLES.index(least) else {REFUSED}
    return {MISSING}


def in_project() -> list[Any]:
    """Return the operations that take a role in a project, as parameters of a test."""
    committed = pytest.mark.django_db(transaction=True)
    return [
        pytest.param(*each, marks=committed if each[1] in THREADED else (), id="-".join(each))
        for each in sorted(LEAST)
        if LEAST[each] in ROLES
    ]


def test_every_page_has_its_line_in_the_table():
    assert set(ROUTES) == {name for _, name in LEAST}


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize(("method", "name"), in_project())
def test_everyone_is_answered_as_the_table_says(job, other_user, browsers, method, name):
    if "job_id" not in ROUTES[name]:
        del browsers[THROUGH_ANOTHER]  # what there is in the other project may be seen there
    before, wrong = rows(), {}
    for who, browser in browsers.items():
        slug = "other" if who == THROUGH_ANOTHER else "rl"
        allowed = expected(who, LEAST[method, name])
        with undone():
            answer = answer_of(browser, method, name, slug=slug, job_id=job.pk)
            if answer not in allowed:
                wrong[who] = answer
            elif allowed == {MISSING} and rows() != before:
                wrong[who] = f"{answer}, and something has changed"
    assert not wrong, f"{method} {name}: {wrong}"


@pytest.mark.feature("P8.1")
def test_what_belongs_to_no_project_takes_a_sign_in_in_a_browser(browsers):
    wrong = {
        (who, *what): answer
        for what in sorted(LEAST)
        if LEAST[what] in {SIGNED_IN, ADMINISTRATOR}
        for who in (VISITOR, TOKEN)
        if (answer := answer_of(browsers[who], *what)) != TO_SIGN_IN
    }
    assert not wrong, str(wrong)


@pytest.mark.feature("P8.1")
def test_administration_is_refused_to_every_role_in_a_project(project, other_user, browsers):
    browsers[ADMINISTRATOR] = browser_of(make_user("root", is_superuser=True))
    wrong = {}
    for what in sorted(what for what in LEAST if LEAST[what] == ADMINISTRATOR):
        before = rows()
        for who in (*ROLES, OUTSIDER, LEFT, BARRED, ADMINISTRATOR):
            with undone():
                answer = answer_of(browsers[who], *what)
                is_refused = answer in {REFUSED, TO_SIGN_IN} and rows() == before
                if is_refused != (who != ADMINISTRATOR):
                    wrong[(who, *what)] = answer
    assert not wrong, str(wrong)


@pytest.mark.feature("P8.1")
@pytest.mark.django_db(transaction=True)
def test_public_pages_need_no_user(redis_client):
    visitor = Client(raise_request_exception=False)
    wrong = {}
    for what in sorted(LEAST):
        if LEAST[what] == PUBLIC:
            answer = ask(visitor, *what)
            if answer.status_code not in {200, 302, 410} or "next=" in answer.get("Location", ""):
                wrong[what] = answer.status_code
    assert not wrong, str(wrong)


def test_whatever_changes_something_takes_a_csrf_token(job, other_user, admin):
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    strict.force_login(admin.user)
    before, wrong = rows(), {}
    tokens: list[dict[str, str]] = [
        {},
        {"Origin": "https://evil.example"},
        {"X-CSRFToken": "a" * 32},
    ]
    for name in sorted(name for method, name in LEAST if method == "post"):
        path = path_of(name, job_id=job.pk)
        with undone():
            statuses = [strict.post(path, form(name), headers=h).status_code for h in tokens]
            if set(statuses) != {REFUSED} or rows() != before:
                wrong[name] = statuses
            elif "_auth_user_id" not in strict.session:
                wrong[name] = "signed out"
    assert not wrong, str(wrong)


def test_methods_that_a_page_does_not_have_are_refused(job, admin):
    admin.raise_request_exception = False
    wrong = {}
    for name in sorted(ROUTES):
        for method in ("get", "post", "put", "patch", "delete", "trace", "propfind"):
            if (method, name) not in LEAST:
                with undone():
                    status = ask(admin, method, name, job_id=job.pk).status_code
                if status != WRONG_METHOD:
                    wrong[method, name] = status
    assert not wrong, str(wrong)


def test_no_user_revokes_anothers_token(project, admin):
    token, _ = make_token(make_user("eve"))
    admin.post(f"/settings/tokens/{token.pk}/revoke")
    assert ApiToken.objects.usable(timezone.now()).filter(pk=token.pk).exists()
