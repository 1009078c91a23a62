"""Every page and method times every role, in one's own project and another: generated.

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
from jobs.models import ApiToken, Cluster, Job, Membership, Project, ProjectSecret, Schedule
from jobs.statuses import JobStatus, Role
from tests.factories import (
    make_array,
    make_job,
    make_member,
    make_project,
    make_schedule,
    make_token,
    make_user,
)
from tests.integration.web.conftest import SOURCE, browser_of
from tests.integration.web.least_roles import LEAST, PUBLIC, ROLES, SIGNED_IN

ARRAY_ID = 4711
# These read in threads of their own, which see only what is committed.
STREAMS = {"jobs_stream", "queue_stream"}
THREADED = {*STREAMS, "readyz"}
CHANGED = (Job, Membership, ApiToken, ProjectSecret, Schedule)
REFUSED, MISSING, WRONG_METHOD = 403, 404, 405


def routes(patterns: Any = None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Name and address of everything outside the API that the URL conf leads to."""
    for each in patterns if patterns is not None else get_resolver().url_patterns:
        if isinstance(each, URLResolver):
            if each.app_name != api:
                yield from routes(each.url_patterns, prefix + str(each.pattern))
        elif isinstance(each, URLPattern):
            yield str(each.name), prefix + str(each.pattern)


ROUTES = dict(routes())


def params(least: set[str], *, method: str = "") -> list[Any]:
    """The operations that take one of these, as parameters of a test."""
    committed = pytest.mark.django_db(transaction=True)
    wanted = {what for what in LEAST if LEAST[what] in least and method in what[0]}
    return [
        pytest.param(*each, marks=committed if each[1] in THREADED else (), id="-".join(each))
        for each in sorted(wanted)
    ]


@pytest.fixture
def job(project: Project) -> Job:
    ProjectSecret.objects.create(project=project, name="A", ciphertext=b"")
    Cluster.objects.create(project=project, name="mpx", backend_name="local", num_nodes=1)
    make_schedule(project, "nightly")
    make_array(project, pk=ARRAY_ID)
    return make_job(project, status=JobStatus.SUCCEEDED)


@pytest.fixture
def other_user(project: Project) -> Any:
    return make_member(project, Role.VIEWER, username="vic")


def form(name: str) -> dict[str, str]:
    """What the page's own form would send."""
    member = {"username": "vic", "role": "member"}
    schedule = {"cron": "@daily", "zone": "UTC", "overlap": "skip", "catch_up": "latest",
                "source": SOURCE}  # fmt: skip
    return {
        "submit": {"source": SOURCE},
        "schedule": schedule,
        "new_schedule": {**schedule, "name": "other"},
        "plan": {"source": SOURCE},
        "prioritize": {"priority": "60"},
        "extend": {"duration": "1h"},
        "cluster_down": {"name": "mpx"},
        "cluster_extend": {"name": "mpx"},
        "any_cluster_down": {"name": "mpx"},
        "usage": {"usd": "5", "on_spent": "hold", "warn_at": "50"},
        "members": member,
        "secrets": {"name": "A", "value": "x"},
        "delete_secret": {"name": "A"},
        "change_role": member,
        "remove_member": member,
        "tokens": {"name": "laptop", "days": "30"},
    }.get(name, {})


def path_of(name: str, slug: str = "rl", job_id: int = 1) -> str:
    parts = {"slug": slug, "job_id": job_id, "token_id": 1, "secret": "made-up", "tab": "spec",
             "schedule_name": "nightly"}  # fmt: skip
    parts["array_id"] = ARRAY_ID
    return "/" + re.sub(r"<\w+:(\w+)>", lambda found: str(parts[found[1]]), ROUTES[name])


def ask(browser: Client, method: str, name: str, **place: Any) -> Any:
    """The answer to the operation, a stream's closed."""
    path = path_of(name, **place)
    response = browser.generic(method.upper(), path) if method not in {"get", "post"} else None
    if response is None:
        response = browser.get(path) if method == "get" else browser.post(path, form(name))
    if response.streaming:
        response.close()
    return response


def test_every_page_has_its_line_in_the_table():
    assert set(ROUTES) == {name for _, name in LEAST}


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "name"), params(set(ROLES)))
def test_a_role_does_in_its_project_what_the_table_says(
    job, other_user, project, role, method, name
):
    browser = browser_of(make_member(project, Role(role)))
    answer = ask(browser, method, name, job_id=job.pk)
    allowed = ROLES.index(role) >= ROLES.index(LEAST[method, name])
    assert answer.status_code in ({200, 302} if allowed else {REFUSED})
    assert "/sign-in" not in answer.get("Location", "")


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("role", ["viewer", "admin"])
@pytest.mark.parametrize(("method", "name"), params(set(ROLES)))
def test_in_another_project_no_role_sees_anything(job, other_user, role, method, name):
    browser = browser_of(make_member(make_project("other"), Role(role)))
    before = list(Membership.objects.values()), list(Job.objects.values())
    assert ask(browser, method, name, job_id=job.pk).status_code == MISSING
    assert (list(Membership.objects.values()), list(Job.objects.values())) == before


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize(
    ("method", "name"), [p for p in params(set(ROLES)) if "job_id" in ROUTES[p.values[1]]]
)
def test_a_job_is_not_reached_through_another_project(job, project, method, name):
    user = make_member(project, Role.ADMIN)
    Membership.objects.create(project=make_project("other"), user=user, role=Role.ADMIN)
    answer = ask(browser_of(user), method, name, slug="other", job_id=job.pk)
    assert answer.status_code == MISSING


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize(("method", "name"), params({*ROLES, SIGNED_IN}))
def test_who_is_not_signed_in_is_sent_to_sign_in_and_back(job, method, name):
    answer = ask(Client(), method, name, job_id=job.pk)
    if name in STREAMS:
        # Its page learns from the parts it asks for next that it has to sign in.
        assert answer.status_code == 204
        return
    assert answer.status_code == 302
    path = path_of(name, job_id=job.pk)
    assert answer["Location"] == f"/sign-in?next={path}"


@pytest.mark.feature("P8.1")
@pytest.mark.django_db
@pytest.mark.parametrize(("method", "name"), params({PUBLIC}))
def test_what_is_public_asks_for_nobody(redis_client, method, name):
    answer = ask(Client(), method, name)
    assert answer.status_code in {200, 302, 410}
    assert "next=" not in answer.get("Location", "")


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize(("method", "name"), params({*ROLES, SIGNED_IN}))
def test_a_token_opens_no_page(job, project, method, name):
    _, secret = make_token(make_member(project, Role.ADMIN))
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    answer = ask(client, method, name, job_id=job.pk)
    assert answer.status_code in {204, 302}
    assert answer.status_code == 204 or answer["Location"].startswith("/sign-in?next=")


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize(("method", "name"), params(set(ROLES)))
def test_who_is_barred_or_has_left_sees_nothing(job, project, method, name):
    user = make_member(project, Role.ADMIN)
    browser = browser_of(user)
    Membership.objects.filter(user=user).delete()
    assert ask(browser, method, name, job_id=job.pk).status_code == MISSING
    user.is_active = False
    user.save()
    answer = ask(browser, method, name, job_id=job.pk)
    assert answer.status_code == 204 or answer["Location"].startswith("/sign-in?next=")


@pytest.mark.parametrize(("method", "name"), params({*ROLES, SIGNED_IN, PUBLIC}, method="post"))
def test_whatever_changes_something_takes_a_csrf_token(job, other_user, admin, method, name):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin.user)
    before = [list(kind.objects.values()) for kind in CHANGED]
    for headers in ({}, {"Origin": "https://evil.example"}, {"X-CSRFToken": "a" * 32}):
        answer = strict.post(path_of(name, job_id=job.pk), form(name), headers=headers)
        assert answer.status_code == REFUSED, headers
    assert [list(kind.objects.values()) for kind in CHANGED] == before
    assert "_auth_user_id" in strict.session


@pytest.mark.parametrize("name", sorted(set(ROUTES)))
def test_methods_that_a_page_does_not_have_are_refused(job, admin, name):
    for method in ("get", "post", "put", "patch", "delete", "trace", "propfind"):
        if (method, name) not in LEAST:
            answer = ask(admin, method, name, job_id=job.pk)
            assert answer.status_code == WRONG_METHOD, method


def test_nobody_ends_anothers_token(project, admin):
    token, _ = make_token(make_user("eve"))
    admin.post(f"/settings/tokens/{token.pk}/revoke")
    assert ApiToken.objects.usable(timezone.now()).filter(pk=token.pk).exists()
